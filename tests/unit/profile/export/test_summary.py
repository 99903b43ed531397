import json
from pathlib import Path

from neuron_tools.profile.export import export_summary, summary_metrics
from tests.fixtures.synthetic_profile import MemoryProfile, table


def test_metrics_stand_under_the_profiles_name_without_those_that_have_no_value(tmp_path):
    profile = MemoryProfile(
        {
            "Summary": table(
                "Summary", total_time=[0.5], model_flops=[1 << 50], mfu_estimated_percent=[float("nan")]
            ),
            "Metadata": table("Metadata", profile_name=["train ü"]),
        }
    )
    report = export_summary(profile, tmp_path / "summary.json")

    content = json.loads((tmp_path / "summary.json").read_text())
    assert content == {"train ü": {"total_time": 0.5, "model_flops": 1 << 50}}
    assert report.counts == {"profiles": 1, "metrics": 2}


def test_without_a_name_the_folder_gives_it():
    profile = MemoryProfile({"Summary": table("Summary", total_time=[0.5])})
    profile.path = Path("/somewhere/run 1.nprof")

    assert set(summary_metrics(profile)) == {"run 1"}


def test_several_rows_become_several_entries():
    profile = MemoryProfile({"Summary": table("Summary", total_time=[0.5, 0.75])})

    assert summary_metrics(profile) == {"profile_0": {"total_time": 0.5}, "profile_1": {"total_time": 0.75}}


def test_a_profile_without_a_summary_has_no_entries():
    assert summary_metrics(MemoryProfile({})) == {}
