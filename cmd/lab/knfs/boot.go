package knfs

import (
	_ "embed"
	"fmt"
	"strings"
)

// The networks of a site. The first is the machine's own way to its guests, which no fault touches.
const (
	frontNet = "10.31.0." // clients and gateways
	backNet  = "10.32.0." // gateways and back end
	// commandPort is where a guest takes commands.
	commandPort = 7110
	// Where the file system is: on clients, and on what serves it.
	mountPoint, exportDir = "/mnt/pfs", "/srv/pfs"
	// ownDir is, in a guest, its folder on the machine.
	ownDir = "/mnt/own"
)

// bootHead begins every guest's start: the machine's root is read-only, what is written lies in memory.
const bootHead = `#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mount -t tmpfs mnt /mnt; mkdir %[1]s; mount -t hostfs none %[1]s -o %[2]s
for d in /run /var/lib /var/tmp /srv; do mount -t tmpfs -o mode=755 t $d; done
mkdir -p /run/m/lib/modules /run/etc/up /run/etc/work /run/rpcbind /run/lock /var/lib/nfs/sm /var/lib/nfs/v4recovery \
  /var/lib/nfs/rpc_pipefs /srv/pfs /mnt/pfs
ln -s /usr/lib/uml/modules/$(uname -r) /run/m/lib/modules/
for m in overlay %[3]s; do modprobe -d /run/m $m; done
mount -t overlay o /etc -o lowerdir=/etc,upperdir=/run/etc/up,workdir=/run/etc/work
hostname %[4]s; ip link set lo up
cp %[1]s/hosts /etc/hosts; echo 'hosts: files' >/etc/nsswitch.conf
`

// serve exports a folder. Without rpcbind's and statd's help there are neither NFSv3 mounts nor locks.
const serve = `mount -t nfsd nfsd /proc/fs/nfsd; rpcbind; touch /var/lib/nfs/etab /var/lib/nfs/rmtab
echo '%s *(rw,no_root_squash,no_subtree_check,insecure,async,fsid=0)' >/etc/exports
exportfs -ra; echo 10 >/proc/fs/nfsd/nfsv4leasetime; echo 1 >/proc/fs/nfsd/nfsv4gracetime
rpc.nfsd %d; rpc.mountd
`

// reach mounts from a server that may still be starting.
const reach = "until mount -t nfs -o retry=0,%s %s %s; do sleep 0.2; done\n"

// boot is the script that a guest starts with.
func (s *Site) boot(g *guest) string {
	modules := "nfs nfsv3 nfsv4 sch_netem"
	if g.role != compute {
		modules += " nfsd"
	}
	var b strings.Builder
	fmt.Fprintf(&b, bootHead, ownDir, g.dir, modules, g.name)
	for i, addr := range g.addrs {
		if addr != "" {
			fmt.Fprintf(&b, "ip addr add %s dev eth%d; ip link set eth%d up\n", addr, i, i)
		}
	}
	// Commands are taken from here on; what follows goes to the console's log.
	fmt.Fprintf(&b, "%s serve %s:%d &\n", strings.Join(s.cfg.Guest, " "), strings.Split(g.addrs[0], "/")[0],
		commandPort)
	switch g.role {
	case backEnd:
		b.WriteString("mount -t tmpfs -o mode=1777,size=128m files /srv/pfs\n" + fmt.Sprintf(serve, exportDir, threads))
	case gateway:
		fmt.Fprintf(&b, reach, "vers=4.2,rsize=65536,wsize=65536", backNet+"1:/", exportDir)
		fmt.Fprintf(&b, serve, exportDir, threads)
	case compute:
		fmt.Fprintf(&b, reach, g.options, g.source, mountPoint)
	}
	b.WriteString("echo up >" + ownDir + "/up\nwhile :; do wait; sleep 1; done\n")
	return b.String()
}

// threads is how many a server of the site has.
const threads = 8

// shim is compiled for user-mode-linux on newer processors.
//
//go:embed uml/shim.c
var shim []byte
