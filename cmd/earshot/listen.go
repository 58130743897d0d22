package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"
)

const (
	// defaultListenPort is close to the API's port.
	defaultListenPort = 4290
	// listenGrace leaves time to answer the last delivery.
	listenGrace = 5 * time.Second
	// listenHeaderTimeout closes connections that send no request.
	listenHeaderTimeout = 10 * time.Second
	secretVariable      = "EARSHOT_WEBHOOK_SECRET"
)

// listenOptions are the flags of `earshot listen`.
type listenOptions struct {
	host       string
	port       int
	portChosen bool // the port comes from a flag, so it is an error if it is taken
	secrets    []string
	secretFile string
	failFirst  int
	count      int
	timeout    time.Duration
	asJSON     bool
	payload    bool
	forward    string
	events     []string
	// client registers a webhook for this run. Nil registers none.
	client *apiClient
	// owner is the id of the stack's directory. A later run with the same directory uses it to find
	// the webhooks that this run left behind. It is empty without a directory.
	owner string
}

// registers reports whether the flags ask for a webhook.
func (o listenOptions) registers() bool { return o.forward != "" || len(o.events) > 0 }

func newListenCommand() *cobra.Command {
	var (
		o   listenOptions
		api apiFlags
	)
	cmd := &cobra.Command{
		Use:   "listen",
		Short: "Receive webhooks, show them and pass them on, for trying things out",
		Long: "Takes POST requests on any path, checks their signatures, shows a line for each and answers 200, or 400\n" +
			"when the signature is wrong. Its URL goes to stderr, the lines go to stdout.\n\n" +
			"With --forward or --events it registers a webhook for itself, with the stack of `earshot up` or another service\n" +
			"that reaches this machine, and removes it at the end. --forward passes each delivery on, unchanged, to a program\n" +
			"of yours, and the service hears that program's answer.",
		Example: "  earshot listen --forward http://localhost:3000/hook --events post.created,comment.created\n" +
			"  earshot listen --secret whsec_…\n" +
			"  earshot listen --fail-first 1 --count 3 --timeout 2m --secret-file secret.txt",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			o.portChosen = cmd.Flags().Changed("port")
			if o.registers() {
				if o.client, err = api.client(os.Environ()); err != nil {
					return err
				}
				if o.owner, err = listenOwner(api.dir, os.Environ()); err != nil {
					return err
				}
			} else if secret := os.Getenv(secretVariable); secret != "" && len(o.secrets) == 0 && o.secretFile == "" {
				o.secrets = []string{secret}
			}
			return listen(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.addFlags(cmd)
	api.add(cmd)
	return cmd
}

func (o *listenOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.host, "host", "127.0.0.1", "address to listen at")
	f.IntVarP(&o.port, "port", "p", defaultListenPort, "port to listen at; 0 takes any free one")
	f.StringVar(&o.forward, "forward", "", "register a webhook and pass its deliveries on to this URL")
	f.StringSliceVar(&o.events, "events", nil, "register a webhook for these events (default with --forward: all)")
	f.StringArrayVar(&o.secrets, "secret", nil, "signing secret; repeat it to accept several ("+secretVariable+" sets it too)")
	f.StringVar(&o.secretFile, "secret-file", "", "file with a signing secret on each line, read again at every request")
	f.IntVar(&o.failFirst, "fail-first", 0, "answer 500 to this many requests first")
	f.IntVarP(&o.count, "count", "n", 0, "end after this many accepted deliveries")
	f.DurationVar(&o.timeout, "timeout", 0, "end after this time; an error if --count is not reached by then")
	f.BoolVar(&o.asJSON, "json", false, "print a line of JSON for each request")
	f.BoolVarP(&o.payload, "payload", "v", false, "print the bodies, too")
	cmd.MarkFlagsMutuallyExclusive("secret", "secret-file")
	for _, registering := range []string{"forward", "events"} { // a registered webhook has its own secret
		cmd.MarkFlagsMutuallyExclusive(registering, "secret")
		cmd.MarkFlagsMutuallyExclusive(registering, "secret-file")
	}
	_ = cmd.RegisterFlagCompletionFunc("events", cobra.FixedCompletions(eventNames(), cobra.ShellCompDirectiveNoFileComp))
}

// listen receives deliveries until ctx ends, the count is reached or the time is over. It registers
// a webhook first if the options ask for one.
func listen(ctx context.Context, o listenOptions, out, errOut io.Writer) (err error) {
	r := newReceiver(o, out)
	if o.forward != "" {
		if r.forward, err = newForwarder(o.forward); err != nil {
			return err
		}
	}
	if o.client != nil {
		// Removal comes before this run takes a port, because the run may get the port of one that
		// was killed.
		if err := removeLeftBehind(ctx, o, errOut); err != nil {
			return err
		}
	}
	listener, err := bind(o, errOut)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // already closed, unless the server never started
	if o.client != nil {
		w, err := register(ctx, o, listener.Addr(), errOut)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.remove(ctx)) }()
		// Deliveries that arrive earlier wait in the listener's queue.
		r.options.secrets, r.path = []string{w.secret}, w.path
	}
	return r.receive(ctx, listener, errOut)
}

// receive serves requests until ctx ends, the count is reached or the time is over.
func (r *receiver) receive(ctx context.Context, listener net.Listener, errOut io.Writer) error {
	o := r.options
	server := &http.Server{Handler: r, ReadHeaderTimeout: listenHeaderTimeout}
	broken := make(chan error, 1)
	go func() { broken <- server.Serve(listener) }()
	fmt.Fprintf(errOut, "Listening on http://%s/ (%s)\n", listener.Addr(), o.checking())

	var over <-chan time.Time
	if o.timeout > 0 {
		timer := time.NewTimer(o.timeout)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case err := <-broken:
		return errors.Wrap(err, "listen")
	case <-ctx.Done():
	case <-over:
	case <-r.enough:
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), listenGrace)
	defer cancel()
	_ = server.Shutdown(grace) // a hanging request doesn't delay the end
	if accepted := r.acceptedCount(); accepted < o.count {
		return errors.Errorf("%d of %d deliveries arrived", accepted, o.count)
	}
	return nil
}

// bind takes the port. If the default port is taken it chooses another, because the URL is
// registered afterwards.
func bind(o listenOptions, errOut io.Writer) (net.Listener, error) {
	address := net.JoinHostPort(o.host, strconv.Itoa(o.port))
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) && !o.portChosen {
		fmt.Fprintf(errOut, "Port %d is taken, another one is used\n", o.port)
		listener, err = net.Listen("tcp", net.JoinHostPort(o.host, "0"))
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, errors.Errorf("port %d is taken: choose another with --port, or 0 for any free one", o.port)
	}
	if err != nil {
		return nil, errors.Wrap(err, "listen")
	}
	return listener, nil
}

// checking describes for the first line of output how signatures are checked.
func (o listenOptions) checking() string {
	switch {
	case o.secretFile != "":
		return "signatures are checked with the secret in " + o.secretFile
	case len(o.secrets) > 0:
		return "signatures are checked"
	default:
		return "signatures are not checked: no --secret"
	}
}
