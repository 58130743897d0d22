package mail_test

import (
	"context"
	"net"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/config"
	"earshot/internal/mail"
)

// scripted returns a client of a server that sends these answers, regardless of the commands, and
// hangs up.
func scripted(t *testing.T, answers ...string) *mail.Mailer {
	t.Helper()
	listener, server := listen(t)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			answer(textproto.NewConn(conn), answers)
			_ = conn.Close()
		}
	}()
	return mail.New(mail.Options{SMTP: server, Log: logTo(t.Output()), Timeout: wait})
}

func answer(c *textproto.Conn, answers []string) {
	for i, text := range answers {
		var err error
		switch {
		case i == 0: // the greeting
		case strings.HasPrefix(answers[i-1], "354"):
			_, err = c.ReadDotBytes()
		default:
			_, err = c.ReadLine()
		}
		if err != nil || c.PrintfLine("%s", text) != nil {
			return
		}
	}
}

// listen returns a listener on loopback, without encryption.
func listen(t *testing.T) (net.Listener, config.SMTP) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	host, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return listener, config.SMTP{Host: host, Port: port, Encryption: config.Plain}
}

// taken are the answers of a server that accepts a message.
var taken = []string{"220 hello", "250 hello", "250 ok", "250 ok", "354 go on", "250 taken"}

func TestAServerThatIsAwayOrFullMayComeBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []string
		want    mail.Error
	}{
		"hangs up":                 {nil, mail.Error{Reason: mail.ConnectionFailed}},
		"refuses all connections":  {[]string{"554 go away"}, mail.Error{Reason: mail.ConnectionFailed, Code: 554}},
		"speaks something else":    {[]string{"HTTP/1.1 400 Bad Request"}, mail.Error{Reason: mail.ConnectionFailed}},
		"hangs up in the middle":   {taken[:3], mail.Error{Reason: mail.ConnectionFailed}},
		"hangs up before the text": {taken[:5], mail.Error{Reason: mail.ConnectionFailed}},
		"closes in the middle":     {append(taken[:3:3], "421 bye"), mail.Error{Reason: mail.RecipientRefused, Code: 421}},
		"answers with a bad line":  {append(taken[:2:2], "5"), mail.Error{Reason: mail.ConnectionFailed}},
		"answers out of order":     {append(taken[:2:2], "354 go on"), mail.Error{Reason: mail.SenderRefused, Code: 354}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireError(t, scripted(t, c.answers...).Send(t.Context(), message()), c.want, false)
		})
	}
	t.Run("doesn't listen", func(t *testing.T) {
		t.Parallel()
		listener, server := listen(t)
		require.NoError(t, listener.Close())
		nobody := mail.New(mail.Options{SMTP: server, Log: logTo(t.Output())})
		requireError(t, nobody.Send(t.Context(), message()), mail.Error{Reason: mail.ConnectionFailed}, false)
	})
}

func TestAMessageThatWasTakenIsSentHoweverTheServerSaysGoodbye(t *testing.T) {
	t.Parallel()
	require.NoError(t, scripted(t, taken...).Send(t.Context(), message()), "without a word")
	for _, goodbye := range []string{"221 bye", "500 what?", ""} {
		require.NoError(t, scripted(t, append(taken[:6:6], goodbye)...).Send(t.Context(), message()), goodbye)
	}
}

func TestTheDecisionOfAMailServerCountsEvenIfItHangsAfterwards(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []string
		want    error
	}{
		"taken":   {taken, nil},
		"refused": {append(taken[:3:3], "550 no such user"), &mail.Error{Reason: mail.RecipientRefused, Code: 550}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			listener, server := listen(t)
			go func() {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				peer := textproto.NewConn(conn)
				answer(peer, c.answers)
				if line, _ := peer.ReadLine(); line == "QUIT" {
					cancel()
				}
				<-t.Context().Done()
			}()
			m := mail.New(mail.Options{SMTP: server, Log: logTo(t.Output()), Timeout: wait})
			require.Equal(t, c.want, m.Send(ctx, message()))
		})
	}
}

func TestAServerThatHangsEndsInTime(t *testing.T) {
	t.Parallel()
	// Long enough to reach the step on most machines. On others the send ends earlier, with the
	// same error.
	soon := func(o *mail.Options) { o.Timeout = 300 * time.Millisecond }
	for _, encryption := range []config.Encryption{config.STARTTLS, config.ImplicitTLS, config.Plain} {
		t.Run("greeting "+string(encryption), func(t *testing.T) {
			t.Parallel()
			_, server := listen(t) // no connection is accepted
			server.Encryption = encryption
			m := open(t, options{}).client(soon, func(o *mail.Options) { o.SMTP = server })
			requireError(t, m.Send(t.Context(), message()), mail.Error{Reason: mail.Timeout}, false)
		})
		for _, stuck := range []string{"auth", "mail", "data"} {
			t.Run(stuck+" "+string(encryption), func(t *testing.T) {
				t.Parallel()
				f := open(t, options{encryption: encryption, logins: []string{"PLAIN"}, at: func(step string) error {
					if step == stuck {
						<-t.Context().Done()
					}
					return nil
				}})
				err := f.client(soon, asUser(password)).Send(t.Context(), message())
				requireError(t, err, mail.Error{Reason: mail.Timeout}, false)
			})
		}
	}
}
