#!/usr/bin/env bash
# Makes all that a release publishes, in dist/, from the tag that is checked out: the source archive, the wheel with the device
# for each Python, tested with each extra alone, the VS Code extension, a bill of materials and checksums.
# Publishes nothing: .github/workflows/release.yml does, after scripts/bare_debian.sh.
#   release.sh vX.Y.Z     PYTHONS names the interpreters to build for [python3.10 python3.11 python3.12 python3.13]
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/system_packages.sh

VENV=${VENV:-.venv}
read -r -a pythons <<<"${PYTHONS:-python3.10 python3.11 python3.12 python3.13}"
tag=${1:-}
[ -n "$tag" ] || fail "usage: scripts/release.sh vX.Y.Z"
[ -z "$(git status --porcelain)" ] || fail "commit first: a release is built from what git has."
version=$(sed -n -E 's/^version = "(.*)"$/\1/p' pyproject.toml)
! grep -q 'neuron-tools\.example' pyproject.toml vscode-extension/package.json .github/ISSUE_TEMPLATE/config.yml ||
    fail "neuron-tools.example stands for the project's public address: put the real one into pyproject.toml, vscode-extension/package.json and .github/ISSUE_TEMPLATE/config.yml."
[ "$tag" = "v$version" ] || fail "the tag is $tag, the project's version $version: python scripts/set_version.py ${tag#v}"
grep -q "^## \[$version\]" CHANGELOG.md || fail "CHANGELOG.md has no section [$version]: name its top section so."
[ "$(git rev-parse -q --verify "refs/tags/$tag^{commit}")" = "$(git rev-parse HEAD)" ] || fail "$tag is not the commit that is checked out."
for python in "${pythons[@]}"; do
    command -v "$python" >/dev/null || fail "there is no $python: install it, or name others in PYTHONS."
done

rm -rf dist
bash .ci/run
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
builders=()
for python in "${pythons[@]}"; do
    builder=$scratch/$(basename "$python")
    PYTHON=$python VENV=$builder scripts/bootstrap.sh runtime
    builders+=("$builder/bin/python")
done
scripts/build_wheels.sh "${builders[@]}"
say "testing each extra alone"
NEURON_TOOLS_WHEEL=$(ls dist/*.whl) "$VENV/bin/python" -m pytest -q -n0 tests/integration/packaging/test_extras.py
"$VENV/bin/npm" run --silent package --workspace vscode-extension
cp vscode-extension/dist/neuron-tools.vsix dist/
say "writing the bill of materials"
python3 -m venv "$scratch/bill"
"$scratch/bill/bin/pip" install --quiet cyclonedx-bom==7.5.0
"$scratch/bill/bin/cyclonedx-py" environment --of JSON --pyproject pyproject.toml -o dist/python.cdx.json "$VENV/bin/python"
"$VENV/bin/npm" sbom --package-lock-only --sbom-format cyclonedx >dist/npm.cdx.json
(cd dist && sha256sum -- * >SHA256SUMS)
say "dist/ has: $(ls dist | tr '\n' ' ')"
