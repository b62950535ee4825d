package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"

	"fairway/cmd/lab/leash"
	"fairway/collector/topology"
)

const (
	// nfsPort is where the back ends listen.
	nfsPort = 2049
	// gatewayTag is what 9P clients attach to at a gateway.
	gatewayTag = "pfs"
)

// ganeshaCommon begins every configuration. Nothing is cached: two gateways are two clients, and must see each
// other's changes at once. Without grace periods a restarted server serves at once.
const ganeshaCommon = `NFS_CORE_PARAM {
	Protocols = %s; Enable_UDP = false; Enable_NLM = false; Enable_RQUOTA = false;
	Enable_NFS_Stats = true; Enable_FULLV4_Stats = true;
}
NFSV4 { Graceless = true; Delegations = false; RecoveryBackend = fs; RecoveryRoot = "%s"; }
NFS_KRB5 { Active_krb5 = false; }
MDCACHE { Dir_Chunk = 0; }
LOG { Default_Log_Level = EVENT; }
`

// ganeshaExport is one export: its number, path, place in the NFSv4 tree, tag, protocols and what is behind it.
const ganeshaExport = `EXPORT {
	Export_Id = %d; Path = "%s"; Pseudo = "%s"; Tag = "%s"; Protocols = %s;
	Access_Type = RW; Squash = none; SecType = sys; Attr_Expiration_Time = 0;
	FSAL { %s }
}
`

// busConfig is a D-Bus of one ganesha's own: all of them have the same name on it.
const busConfig = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
 <type>system</type>
 <listen>unix:path=%s</listen>
 <auth>EXTERNAL</auth>
 <policy context="default">
  <allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
 </policy>
</busconfig>
`

// startBackEnds starts the servers behind the gateways of the layer NFS.
func (tb *Testbed) startBackEnds(ctx context.Context) error {
	var servers []*node
	for i := range tb.cfg.backEnds {
		n, err := tb.find(tb.cfg.backEnd(i))
		if err != nil {
			return err
		}
		n.port = nfsPort
		servers = append(servers, n)
	}
	return eachNode(servers, func(n *node) error {
		// An export for each gateway, so that the server counts by gateway.
		conf := fmt.Sprintf(ganeshaCommon, "4", filepath.Join(tb.NodeDir(n.id), "recovery"))
		for g := range tb.cfg.Forwarders {
			if tb.cfg.backEndOf(g) == n.id {
				name := string(tb.cfg.forwarder(g))
				conf += fmt.Sprintf(ganeshaExport, g+1, exportDir, "/"+name, name, "4", "Name = VFS;")
			}
		}
		return tb.startGanesha(ctx, n, conf, func(ctx context.Context) error {
			return n.enter(func() error { return listens(ctx, n) })
		})
	})
}

// startGateway starts the ganesha of a forwarder, which has its back end's export as its own.
func (tb *Testbed) startGateway(ctx context.Context, n *node) error {
	f := topology.ForwarderID(n.id)
	g, ok := tb.forwarderIndex(f)
	if !ok {
		return fmt.Errorf("start the gateway: %s is not a forwarder", n.id)
	}
	behind, err := tb.find(tb.cfg.backEndOf(g))
	if err != nil {
		return err
	}
	// A larger message than 64 KiB crashes ganesha 4.3 at the first large read.
	conf := fmt.Sprintf(ganeshaCommon, "4, 9P", filepath.Join(tb.NodeDir(n.id), "recovery")) +
		fmt.Sprintf("_9P { _9P_TCP_Port = %d; _9P_TCP_Msize = %d; }\n", diodPort, msize) +
		fmt.Sprintf(ganeshaExport, 1, "/"+string(n.id), "/"+gatewayTag, gatewayTag, "4, 9P", fmt.Sprintf(
			"Name = PROXY_V4; Srv_Addr = %s; RPC_Client_Timeout = 20; Retry_SleepTime = 1;", behind.addr))
	for try := 1; ; try++ {
		err := tb.tryGateway(ctx, n, conf)
		if err == nil || try == gatewayTries || ctx.Err() != nil {
			return err
		}
		tb.service(n.id).Kill()
	}
}

// A gateway that loses its first request to the back end, in a race of its own threads, starts without its export and
// never has it: it is started again.
const (
	gatewayTries  = 4
	gatewayWithin = 5 * time.Second
)

func (tb *Testbed) tryGateway(ctx context.Context, n *node, conf string) error {
	ctx, cancel := context.WithTimeout(ctx, gatewayWithin)
	defer cancel()
	return tb.startGanesha(ctx, n, conf, func(ctx context.Context) error {
		err := answers(ctx, tb.ForwarderAddr(topology.ForwarderID(n.id)), tb.Attach())
		if errors.Is(err, syscall.ENOENT) {
			cancel() // it serves, and has no export
		}
		return err
	})
}

// startGanesha starts a bus and a ganesha on a node and waits until it serves.
func (tb *Testbed) startGanesha(ctx context.Context, n *node, conf string, ready func(context.Context) error) error {
	dir := tb.NodeDir(n.id)
	file, busFile := filepath.Join(dir, "ganesha.conf"), filepath.Join(dir, "bus.conf")
	bus := tb.BusSocket(n.id)
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "recovery"), 0o755),
		os.WriteFile(file, []byte(conf), 0o644),
		os.WriteFile(busFile, fmt.Appendf(nil, busConfig, dbus.EscapeBusAddressValue(bus)), 0o644)); err != nil {
		return err
	}
	if _, err := os.Stat(bus); errors.Is(err, os.ErrNotExist) { // else it is there from an earlier start
		p, err := tb.launch(n, "dbus-daemon", "dbus-daemon", "--config-file="+busFile, "--nofork", "--nopidfile")
		if err != nil {
			return err
		}
		if err := p.AwaitReady(ctx, readyWithin, func(context.Context) error {
			_, err := os.Stat(bus)
			return err
		}); err != nil {
			return err
		}
	}
	program, err := leash.Look("ganesha.nfsd")
	if err != nil {
		return err
	}
	p, err := tb.launch(n, "ganesha", "env", "DBUS_SYSTEM_BUS_ADDRESS=unix:path="+dbus.EscapeBusAddressValue(bus),
		program, "-F",
		"-L", filepath.Join(tb.LogDir(), "ganesha."+string(n.id)+".log"), "-f", file,
		"-p", filepath.Join(dir, "ganesha.pid"))
	if err != nil {
		return err
	}
	tb.setService(n, p)
	return p.AwaitReady(ctx, readyWithin, ready)
}

// BusSocket is the socket of the D-Bus that a gateway's or back end's ganesha is on.
func (tb *Testbed) BusSocket(id topology.NodeID) string { return filepath.Join(tb.NodeDir(id), "bus") }

// listens checks that something listens at a node's port.
func listens(ctx context.Context, n *node) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(n.addr, n.port).String())
	if err != nil {
		return err
	}
	return c.Close()
}

// BackEnds returns the servers behind the gateways, and which of them each gateway uses; nil in the layer Diod.
func (tb *Testbed) BackEnds() (servers []topology.NodeID, of map[topology.ForwarderID]topology.NodeID) {
	if tb.cfg.backEnds == 0 {
		return nil, nil
	}
	of = map[topology.ForwarderID]topology.NodeID{}
	for i := range tb.cfg.backEnds {
		servers = append(servers, tb.cfg.backEnd(i))
	}
	for g := range tb.cfg.Forwarders {
		of[tb.cfg.forwarder(g)] = tb.cfg.backEndOf(g)
	}
	return servers, of
}

// isBackEnd says whether a node is a server behind the gateways.
func (tb *Testbed) isBackEnd(id topology.NodeID) bool {
	return tb.cfg.Layer == NFS && tb.cfg.hasFiles(id)
}
