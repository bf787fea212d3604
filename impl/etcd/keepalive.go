package etcd

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// alive is what became of one keep-alive: the whole TTL of the lease from now,
// or 0 where there is no such lease any more; and the raft term in which that was said.
type alive struct {
	seconds int64
	term    uint64
}

// keepAlive asks once for each of ids, on one stream, without waiting for one
// answer before it asks for the next. What was answered before an error counts
// all the same: the answers are as many as came, in the order of ids.
//
// The client's own KeepAlive is of no use here: it goes on by itself, and so
// renews for a candidate that has long ceased to ask.
func (s *Store) keepAlive(ctx context.Context, ids []clientv3.LeaseID) ([]alive, error) {
	// The end of ctx ends the stream, and with it the goroutine that sends.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	sent := make(chan struct{})
	defer func() { cancel(); <-sent }()
	stream, err := clientv3.RetryLeaseClient(s.client).LeaseKeepAlive(ctx)
	if err != nil {
		close(sent)
		return nil, clientv3.ContextError(ctx, err)
	}
	go func() {
		defer close(sent)
		for _, id := range ids {
			if stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(id)}) != nil {
				return // Recv has the reason
			}
		}
	}()
	answers := make([]alive, 0, len(ids))
	for _, id := range ids {
		resp, err := stream.Recv()
		switch {
		case err != nil:
			return answers, clientv3.ContextError(ctx, err)
		case resp.ID != int64(id):
			return answers, fmt.Errorf("keep-alive of lease %x was answered for %x", id, resp.ID)
		}
		answers = append(answers, alive{seconds: resp.TTL, term: resp.Header.GetRaftTerm()})
	}
	return answers, nil
}
