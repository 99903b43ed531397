"""Options in the form of AWS's compiler command."""

import warnings

import pytest

from neuron_tools.compiler.flags import CompilerFlags, parse_flags
from neuron_tools.errors import UsageError


@pytest.mark.parametrize(
    "flags",
    ["--auto-cast=matmult --auto-cast-type=fp16", "--auto-cast matmult --auto_cast_type fp16"],
)
def test_options_are_read_with_and_without_an_equals_sign(flags):
    options = parse_flags(flags).options
    assert (options.auto_cast, options.auto_cast_type) == ("matmult", "f16")


def test_words_are_read_as_a_line_is():
    assert parse_flags(["--target", "trn1"]) == parse_flags("--target=trn1")


def test_the_environment_stands_before_the_arguments():
    environment = {"NEURON_CC_FLAGS": "--auto-cast all --cache_dir='/tmp/a b' --target inf2"}
    found = parse_flags("--auto-cast none", with_environment=True, environment=environment)
    assert (found.options.auto_cast, found.target, found.cache_directory) == ("none", "inf2", "/tmp/a b")


def test_options_that_change_nothing_here_are_passed_over():
    known = "--model-type=transformer -O1 stray --internal-any --tensorizer-options '--vectorize'"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parse_flags(known) == CompilerFlags()


@pytest.mark.parametrize("flags", ["--auto-csat=all", "--model_typ transformer", "--enable-saturate-infinty"])
def test_a_misspelt_option_is_refused_with_the_right_one(flags):
    name = flags.partition("=")[0].partition(" ")[0].replace("_", "-")
    with pytest.raises(UsageError, match=rf"no option {name}: did you mean --[a-z-]+\?$"):
        parse_flags(flags)


def test_an_option_that_nothing_is_known_of_is_a_warning():
    with pytest.warns(RuntimeWarning, match="No compiler option --reduce-everything is known"):
        assert parse_flags(["--reduce-everything"]) == CompilerFlags()


def test_nothing_is_the_default():
    assert parse_flags("") == CompilerFlags()


@pytest.mark.parametrize("flags", ["--auto-cast=some", "--auto-cast-type=int3", "--auto-cast"])
def test_values_that_do_not_exist_are_refused_with_the_choices(flags):
    with pytest.raises(UsageError, match="choose one of"):
        parse_flags(flags)


def test_options_of_the_compiler_for_inferentia_1_are_read():
    found = parse_flags(
        "--fast-math fp32-cast-matmult-fp16 no-fast-relayout --neuroncore-pipeline-cores 4 -O1"
    )
    assert (found.options.auto_cast, found.options.auto_cast_type) == ("matmult", "f16")
    assert found.pipeline_cores == 4
    assert parse_flags("--fp32-cast all --num-neuroncores=2").pipeline_cores == 2


@pytest.mark.parametrize("cores", ["0", "65", "many"])
def test_a_number_of_cores_that_no_machine_has_is_refused(cores):
    with pytest.raises(UsageError, match="give the number of NeuronCores, from 1 to 64"):
        parse_flags(["--neuroncore-pipeline-cores", cores])
