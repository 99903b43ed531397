# What a reader's shell does with commands that wait for a reader: servers are opened, asked once and ended.

# until_it_serves COMMAND...: runs it until it answers at the address that it prints, then ends it.
until_it_serves() {
    local log address number
    log=$(mktemp)
    "$@" >"$log" 2>&1 &
    number=$!
    for _ in $(seq 600); do
        address=$(grep -o 'http://[^ ]*' "$log" | head -1) || true
        if [ -n "$address" ] && curl -sf -o /dev/null "$address"; then
            sleep 3
            kill "$number" && wait "$number" || true
            return 0
        fi
        kill -0 "$number" 2>/dev/null || break
        sleep 0.1
    done
    cat "$log"
    kill "$number" 2>/dev/null || true
    return 1
}

neuron-profile() {
    case "$1 $*" in
        "view "*--output-format* | "view "*--output-file*) command neuron-profile "$@" ;;
        "view "*) until_it_serves env BROWSER=true neuron-profile "$@" ;;
        *) command neuron-profile "$@" ;;
    esac
}

neuron-monitor() {
    case $1 in
        dashboard) until_it_serves env BROWSER=true neuron-monitor "$@" ;;
        *) command neuron-monitor "$@" ;;
    esac
}

# On a terminal, for three seconds.
neuron-top() { TERM=xterm script --quiet --return --command "timeout --signal=INT 3 neuron-top $*" /dev/null >/dev/null || [ $? = 124 ]; }

neuron-explorer() { until_it_serves env BROWSER=true neuron-explorer "$@"; }

# Installed already; whether an installation works is tested in environments of its own.
pip() { [ "$1" = install ]; }

# The tests are what runs this.
make() {
    case $1 in
        demo) (cd "$CHECKOUT" && scripts/demo.sh "$OLDPWD/demo") ;;
        test) ;;
        *) command make "$@" ;;
    esac
}
