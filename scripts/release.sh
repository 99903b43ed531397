#!/usr/bin/env bash
# Makes all that a release publishes, in dist/, from the tag that is checked out: the source archive, the wheel with the device,
# the VS Code extension, a bill of materials and checksums. Publishes nothing: .github/workflows/release.yml does.
#   release.sh vX.Y.Z
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/system_packages.sh

VENV=${VENV:-.venv}
tag=${1:-}
[ -n "$tag" ] || fail "usage: scripts/release.sh vX.Y.Z"
[ -z "$(git status --porcelain)" ] || fail "commit first: a release is built from what git has."
version=$(sed -n -E 's/^version = "(.*)"$/\1/p' pyproject.toml)
! grep -q 'neuron-tools\.example' pyproject.toml vscode-extension/package.json .github/ISSUE_TEMPLATE/config.yml ||
    fail "neuron-tools.example stands for the project's public address: put the real one into pyproject.toml, vscode-extension/package.json and .github/ISSUE_TEMPLATE/config.yml."
[ "$tag" = "v$version" ] || fail "the tag is $tag, the project's version $version: python scripts/set_version.py ${tag#v}"
grep -q "^## \[$version\]" CHANGELOG.md || fail "CHANGELOG.md has no section [$version]: name its top section so."
[ "$(git rev-parse -q --verify "refs/tags/$tag^{commit}")" = "$(git rev-parse HEAD)" ] || fail "$tag is not the commit that is checked out."

rm -rf dist
bash .ci/run
make --no-print-directory dist
"$VENV/bin/npm" run --silent package --workspace vscode-extension
cp vscode-extension/dist/neuron-tools.vsix dist/
say "writing the bill of materials"
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools/venv"
"$tools/venv/bin/pip" install --quiet cyclonedx-bom==7.5.0
"$tools/venv/bin/cyclonedx-py" environment --of JSON --pyproject pyproject.toml -o dist/python.cdx.json "$VENV/bin/python"
"$VENV/bin/npm" sbom --package-lock-only --sbom-format cyclonedx >dist/npm.cdx.json
(cd dist && sha256sum -- * >SHA256SUMS)
say "dist/ has: $(ls dist | tr '\n' ' ')"
