p={path}; d=$p; [ -d "$p" ] || d=$(dirname "$p")
if [ -b "$p" ]; then echo "kind device"; elif [ -d "$p" ]; then echo "kind folder"
elif [ -e "$p" ] || [ -L "$p" ]; then echo "kind file"; elif [ -d "$d" ]; then echo "kind new"
else echo "kind nowhere"; exit 0; fi
echo "real $(readlink -f "$p")"
if [ -w "$d" ] && [ -x "$d" ]; then echo "writable yes"; fi
if [ -b "$p" ]; then
if [ -r "$p" ] && [ -w "$p" ]; then echo "by-user yes"
elif sudo -n true 2>/dev/null; then echo "by-root yes"; fi
echo "size $(lsblk -b -n -d -o SIZE "$(readlink -f "$p")")"
echo "layers $(layers "$(readlink -f "$p")" | tr '\n' ' ')"; exit 0; fi
findmnt -n -o FSTYPE,SOURCE -T "$d" | tail -n 1 | sed 's/^/system /'
df --output=size -B1 "$d" | tail -n 1 | sed 's/^/total /'
df --output=avail -B1 "$d" | tail -n 1 | sed 's/^/room /'
s=$(findmnt -n -o SOURCE -T "$d" | tail -n 1)
case $s in /dev/*) echo "layers $(layers "$s" | tr '\n' ' ')";; esac
