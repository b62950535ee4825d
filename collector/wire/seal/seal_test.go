package seal

import (
	"bytes"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
)

const token = "fwn1.Y241.t8x2k0.c2VjcmV0IG9mIHRoaXMgbm9kZSBhbG9uZSBhbmQgbm8gb3RoZXI"

// ends returns both ends of a stream: what each end sends by out, the other opens by in.
func ends(t *testing.T, has, wants string) (nodeIn, nodeOut, daemonIn, daemonOut *Half, err error) {
	t.Helper()
	o, err := NewOffer(has)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParseOffer(o.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	answer, daemonIn, daemonOut, err := p.Accept(wants)
	if err != nil {
		t.Fatal(err)
	}
	nodeIn, nodeOut, err = o.Take(has, answer)
	return nodeIn, nodeOut, daemonIn, daemonOut, err
}

func TestBothEndsUnderstandEachOther(t *testing.T) {
	nodeIn, nodeOut, daemonIn, daemonOut, err := ends(t, token, token)
	if err != nil {
		t.Fatal(err)
	}
	large := make([]byte, 100<<10)
	rand.Read(large)
	for _, way := range []struct{ out, in *Half }{{nodeOut, daemonIn}, {daemonOut, nodeIn}} {
		for _, msg := range [][]byte{[]byte("a second"), {}, large, large[:partSize]} {
			got, whole := Whole{Most: len(large)}, false
			var text []byte
			_, err := way.out.Parts(nil, msg, func(sealed []byte) error {
				if len(msg) > 20 && bytes.Contains(sealed, msg[:20]) {
					t.Error("the text can be read")
				}
				kind, part, err := way.in.Open(slices.Clone(sealed))
				if err == nil {
					text, whole, err = got.Add(kind, part)
				}
				return err
			})
			if err != nil || !whole || !bytes.Equal(text, msg) {
				t.Errorf("message of %d bytes: whole %v, %d bytes: %v", len(msg), whole, len(text), err)
			}
		}
	}
	small := Whole{Most: 10}
	if _, _, err := small.Add(Part, make([]byte, 8)); err != nil {
		t.Error(err)
	}
	if _, _, err := small.Add(Message, make([]byte, 8)); err == nil {
		t.Error("a message of 16 bytes where 10 are the most")
	}
}

// TestTheWayChangesNothing lets whoever carries a stream do what it likes with it.
func TestTheWayChangesNothing(t *testing.T) {
	for name, change := range map[string]func(m [][]byte) [][]byte{
		"repeated":   func(m [][]byte) [][]byte { return [][]byte{m[0], m[0]} },
		"left out":   func(m [][]byte) [][]byte { return m[1:] },
		"reordered":  func(m [][]byte) [][]byte { return [][]byte{m[1], m[0]} },
		"one bit":    func(m [][]byte) [][]byte { m[0][5] ^= 1; return m },
		"its kind":   func(m [][]byte) [][]byte { m[0][0] = byte(Pong); return m },
		"cut":        func(m [][]byte) [][]byte { return [][]byte{m[0][:len(m[0])-1]} },
		"empty":      func([][]byte) [][]byte { return [][]byte{{}} },
		"the other":  func([][]byte) [][]byte { return nil }, // what the daemon sent comes back to it
		"made up":    func([][]byte) [][]byte { return [][]byte{append([]byte{byte(Message)}, make([]byte, 40)...)} },
		"unchanged":  func(m [][]byte) [][]byte { return m },
		"of another": nil,
	} {
		_, nodeOut, daemonIn, daemonOut, err := ends(t, token, token)
		if err != nil {
			t.Fatal(err)
		}
		var m [][]byte
		for _, text := range []string{"the first second", "the second one"} {
			m = append(m, nodeOut.Seal(nil, Message, []byte(text)))
		}
		switch name {
		case "the other":
			m = [][]byte{daemonOut.Seal(nil, Message, []byte("an order"))}
		case "of another": // an earlier stream of the same node
			_, earlier, _, _, err := ends(t, token, token)
			if err != nil {
				t.Fatal(err)
			}
			m = [][]byte{earlier.Seal(nil, Message, []byte("the first second"))}
		default:
			m = change(m)
		}
		err = nil
		for _, sealed := range m {
			if _, _, e := daemonIn.Open(sealed); e != nil {
				err = e
			}
		}
		if errors.Is(err, ErrBroken) == (name == "unchanged") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOnlyWhoHasTheTokenAnswers has a daemon without the node's token, and offers whose name was changed on the way.
func TestOnlyWhoHasTheTokenAnswers(t *testing.T) {
	if _, _, _, _, err := ends(t, token, token[:len(token)-1]+"J"); !errors.Is(err, ErrBroken) {
		t.Errorf("a daemon with another token: %v", err)
	}
	o, err := NewOffer(token)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(o.Bytes()), token[strings.LastIndexByte(token, '.')+1:]) {
		t.Error("the offer has the token's proof")
	}
	if !o.Of(token) || o.Of(token+"x") || o.Of("fwn1.Y242.t8x2k0.c2VjcmV0") {
		t.Error("which token an offer is of")
	}
	other := bytes.Replace(o.Bytes(), []byte("Y241"), []byte("Y242"), 1)
	p, err := ParseOffer(other)
	if err != nil {
		t.Fatal(err)
	}
	answer, _, _, err := p.Accept(token) // as if the daemon took it for the other node's
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := o.Take(token, answer); !errors.Is(err, ErrBroken) {
		t.Errorf("a changed name: %v", err)
	}
	for _, bad := range [][]byte{nil, {1}, make([]byte, MaxOffer+1), append([]byte{9}, other[1:]...)} {
		if _, err := ParseOffer(bad); err == nil {
			t.Errorf("an offer of %d bytes is taken", len(bad))
		}
	}
	if _, err := NewOffer("a-shared-token"); err == nil {
		t.Error("a shared token is taken")
	}
	if _, _, err := o.Take(token, []byte("short")); !errors.Is(err, ErrBroken) {
		t.Errorf("a short answer: %v", err)
	}
}

// FuzzParseOffer: what parses is a head and the bytes that came, of no more than MaxOffer, and of no token but its own.
func FuzzParseOffer(f *testing.F) {
	o, err := NewOffer(token)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(o.Bytes())
	f.Add(o.Bytes()[:1+nonceSize+checkSize])
	f.Add(make([]byte, MaxOffer+1))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		o, err := ParseOffer(b)
		if err != nil {
			return
		}
		if len(b) > MaxOffer || o.Head == "" || !bytes.Equal(o.Bytes(), before) ||
			!strings.HasSuffix(string(b), o.Head) {
			t.Fatalf("an offer of %d bytes has the head %q", len(b), o.Head)
		}
		clear(b) // it belongs to the caller
		if !bytes.Equal(o.Bytes(), before) {
			t.Fatal("the offer changes with the buffer that it was read from")
		}
		if o.Of(token) && !strings.HasPrefix(token, o.Head+".") {
			t.Fatalf("the offer of %q is of another token", o.Head)
		}
		answer, in, _, err := o.Accept(o.Head + ".a-proof")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := o.Take(o.Head+".another-proof", answer); !errors.Is(err, ErrBroken) {
			t.Fatalf("another token's answer is taken: %v", err)
		}
		nodeIn, out, err := o.Take(o.Head+".a-proof", answer)
		if err != nil || nodeIn == nil {
			t.Fatal(err)
		}
		if kind, text, err := in.Open(out.Seal(nil, Message, before)); err != nil || kind != Message ||
			!bytes.Equal(text, before) {
			t.Fatalf("the ends do not understand each other: %v", err)
		}
	})
}
