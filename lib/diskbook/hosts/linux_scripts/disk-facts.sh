set -e; d=$(readlink -f {path}); n={size}
for s in os root resource; do
if [ "$(readlink -f /dev/disk/azure/$s)" = "$d" ]; then echo "special $s"; fi; done
echo "lsblk $(sudo -n lsblk -J -b -o NAME,SIZE,TYPE,PTTYPE,FSTYPE,MOUNTPOINTS,SERIAL,WWN "$d" | tr -d '\n')"
echo "wipefs $(sudo -n wipefs -J -n "$d" | tr -d '\n')"
at() {{ sudo -n dd if="$d" bs=$1 skip=$2 count=1 status=none; }}
echo "head $(at 1048576 0 | sha256sum | cut -c-64)"
end() {{ sudo -n dd if="$d" bs=1M skip=$((n - 1048576)) count=1 iflag=skip_bytes,fullblock status=none; }}
echo "tail $(end | sha256sum | cut -c-64)"
echo "mark $(at 4096 $(((n - 1048576) / 4096)) | base64 -w0)"
