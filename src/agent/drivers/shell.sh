# Driver of a shell session. A placeholder: it reports that it is ready and ends with the channel.
printf '{"event":"ready"}\n' >&3
while read -r line <&3; do :; done
