#!/bin/sh
# Lay out the root of the static image:
#   static-root.sh DIRECTORY ROOT
# It holds the directory that `make directory` built, the files of this machine's libc that it
# needs, the certificates of the authorities as Debian has them, and names for the user.
set -eu

directory=$1 root=$2
authorities=/usr/share/ca-certificates/mozilla

rm -rf "$root"
mkdir -p "$root/etc/ssl/certs" "$root/opt"
cp -a "$directory" "$root/opt/api-exporter"

# The loader is where the executable says, the libraries are where libc itself is.
loader=$(ldd "$directory/api-exporter" | awk '$1 ~ /^\// { print $1 }')
libc=$(ldd "$directory/api-exporter" | awk '$1 == "libc.so.6" { print $3 }')
find "$directory" -type f \( -name '*.so' -o -name '*.so.*' -o -name api-exporter \) \
    -exec objdump --private-headers {} + | awk '$1 == "NEEDED" { print $2 }' | sort -u |
while read -r library; do
    if [ -z "$(find "$directory" -name "$library")" ]; then
        install -D -m 644 -t "$root${libc%/*}" "${libc%/*}/$library"
    fi
done
install -D -m 755 "$loader" "$root$loader"
rm -f "$root${libc%/*}/${loader##*/}"

# Whose they are.
for package in libc6 ca-certificates; do
    install -D -m 644 -t "$root/usr/share/doc/$package" "/usr/share/doc/$package/copyright"
done
cp -a /usr/share/common-licenses "$root/usr/share/"

cat "$authorities"/*.crt >"$root/etc/ssl/certs/ca-certificates.crt"
echo "hosts: files dns" >"$root/etc/nsswitch.conf"
echo "api-exporter:x:65532:65532::/:/" >"$root/etc/passwd"
echo "api-exporter:x:65532:" >"$root/etc/group"
chmod -R u=rwX,go=rX "$root"
find "$root" -newermt "@$SOURCE_DATE_EPOCH" \
    -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
