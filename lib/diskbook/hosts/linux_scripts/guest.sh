t={target}; echo "kernel $(uname -sr)"
echo "cpu_model $(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)"
[ -e "$t" ] || exit 0
[ -b "$t" ] || t=$(df --output=source -- "$t" | tail -n 1)
t=$(readlink -f -- "$t"); b=$(readlink -f -- "/sys/class/block/${{t##*/}}")
[ -b "$t" ] && [ -d "$b" ] || exit 0
if [ -e "$b/partition" ]; then b=${{b%/*}}; fi
for f in write_cache fua scheduler nr_requests wbt_lat_usec logical_block_size rotational; do
if [ -r "$b/queue/$f" ]; then echo "$f $(cat "$b/queue/$f" 2>/dev/null)"; fi; done
if [ -d "$b/mq" ]; then echo "hardware_queues $(ls "$b/mq" | wc -l)"; fi
d=$(readlink -f -- "$b/device")
while [ -e "$b/device" ] && [ "${{d#/sys/devices/}}" != "$d" ]; do
if [ -e "$d/driver" ]; then n=$(readlink -f -- "$d/driver"); echo "driver ${{n##*/}}"; fi; d=${{d%/*}}; done
if [ ! -e "$b/device" ]; then m=$(cut -d: -f1 "$b/dev")
sed -n '/^Block/,$p' /proc/devices | sed -n "s/^ *$m /driver /p"; fi; true
