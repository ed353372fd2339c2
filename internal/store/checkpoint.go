package store

// checkpointer moves the log into the database on a connection of its own, so
// that commits do not wait for it. It never blocks readers or the writer, and
// so may leave a rest behind; when the log grows all the same, the writer
// makes it start anew, see writer.boundLog.
type checkpointer struct {
	session *session
	wake    chan struct{}
	quit    chan struct{}
	done    chan struct{}
}

func newCheckpointer(s *Store) (*checkpointer, error) {
	c, err := s.open(openReader)
	if err != nil {
		return nil, err
	}
	if err := c.exec("PRAGMA query_only=OFF"); err != nil {
		c.close()
		return nil, err
	}
	return &checkpointer{
		session: newSession(s, c),
		wake:    make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}, nil
}

func (k *checkpointer) loop() {
	defer close(k.done)
	for {
		select {
		case <-k.quit:
			return
		case <-k.wake:
			// An error here is not lost: the log stays, and whoever reads or
			// writes next meets the same trouble.
			k.session.c.checkpoint(false)
		}
	}
}

// poke asks for a checkpoint, unless one is asked for already.
func (k *checkpointer) poke() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *checkpointer) stop() {
	close(k.quit)
	<-k.done
}
