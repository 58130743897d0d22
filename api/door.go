package api

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// door is a listener that has only so many connections open. When one more comes,
// the one that has waited longest gives way: idle, slow to send a request, or slow
// to read its answer. A request that is being worked on never does, so while there
// is nothing else, the next connection waits.
type door struct {
	net.Listener
	limit int

	mu     sync.Mutex
	change *sync.Cond // something was closed, or waits
	open   int
	// waiting are the *visitor for whom nothing is done, the longest first.
	waiting *list.List
	closed  bool
}

// evictions are how many give way when the process can't open anything more: for
// that connection, and for what others in the process wanted to open.
const evictions = 16

func newDoor(l net.Listener, limit int) *door {
	d := &door{Listener: l, limit: limit, waiting: list.New()}
	d.change = sync.NewCond(&d.mu)
	return d
}

// Accept waits for a connection and for room. Out of file descriptors it makes room
// and returns the error, after which http.Server tries again.
func (d *door) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err != nil {
		d.giveWay(evictions)
		return nil, err
	}
	d.mu.Lock()
	for d.open >= d.limit && !d.closed {
		if d.waiting.Len() == 0 {
			d.change.Wait()
			continue
		}
		d.mu.Unlock()
		d.giveWay(1)
		d.mu.Lock()
	}
	defer d.mu.Unlock()
	v := &visitor{Conn: c, door: d}
	d.open++
	v.wait()
	return v, nil
}

func (d *door) giveWay(n int) {
	for range n {
		d.mu.Lock()
		longest := d.waiting.Front()
		d.mu.Unlock()
		if longest == nil {
			return
		}
		_ = longest.Value.(*visitor).Close()
	}
}

// Close takes no more connections; those that are open stay.
func (d *door) Close() error {
	d.mu.Lock()
	d.closed = true
	d.change.Broadcast()
	d.mu.Unlock()
	return d.Listener.Close()
}

// visitor is a connection that came in by the door.
type visitor struct {
	net.Conn
	door *door
	// Under the door's lock. Place is among those that wait, nil while a request is
	// worked on and when it is gone.
	place   *list.Element
	working bool
	gone    bool
}

type visitorKey struct{}

// atWork notes that a request is being worked on.
func atWork(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v, ok := r.Context().Value(visitorKey{}).(*visitor); ok {
			if !v.set(true) {
				// It gave way meanwhile, and nobody would hear what became of this.
				panic(http.ErrAbortHandler)
			}
			defer v.set(false)
		}
		h.ServeHTTP(w, r)
	})
}

// set reports whether the connection is still there.
func (v *visitor) set(working bool) bool {
	v.door.mu.Lock()
	defer v.door.mu.Unlock()
	v.working = working
	if working {
		v.leave()
	} else {
		v.wait()
	}
	return !v.gone
}

// wait and leave need the door's lock.
func (v *visitor) wait() {
	if v.place == nil && !v.gone {
		v.place = v.door.waiting.PushBack(v)
		v.door.change.Signal()
	}
}

func (v *visitor) leave() {
	if v.place != nil {
		v.door.waiting.Remove(v.place)
		v.place = nil
	}
}

// Write waits for the client.
func (v *visitor) Write(b []byte) (int, error) {
	v.door.mu.Lock()
	v.wait()
	v.door.mu.Unlock()
	n, err := v.Conn.Write(b)
	v.door.mu.Lock()
	if v.working {
		v.leave()
	}
	v.door.mu.Unlock()
	return n, err
}

// CloseWrite lets http.Server end its side first, so that the client still reads
// why it is refused.
func (v *visitor) CloseWrite() error {
	if c, ok := v.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// Close makes room for the next.
func (v *visitor) Close() error {
	v.door.mu.Lock()
	if !v.gone {
		v.leave()
		v.gone = true
		v.door.open--
		v.door.change.Signal()
	}
	v.door.mu.Unlock()
	return v.Conn.Close()
}
