// One end of an HTTP/2 connection: nghttp2's session, fed with bytes, which judges every frame
// before nghttp2 sees it. The owner, ServerSession or ClientSession, knows what the streams mean.
//
//   Receive(bytes) ──▶ FrameScan ──▶ budgets, late frames ──▶ nghttp2 ──▶ Events
//   Submit…, Reset ──▶ nghttp2's queues ──▶ Send ──▶ bytes
//
// Flow control. DATA of a stream counts until Consume. The connection's window is refilled at once,
// so one stream never holds up another; the windows of the streams bound the buffers. DATA to the
// peer waits in the bodies while kBacklogMax bytes of output are unsent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/time.h"
#include "headgate/http/http2/flood_guard.h"
#include "headgate/http/http2/frame_buffer.h"
#include "headgate/http/http2/frame_scan.h"
#include "headgate/http/http2/outgoing_body.h"

struct nghttp2_session;

namespace headgate::http::http2 {

class FieldList;

// RFC 9113, 7.
enum class ErrorCode : uint32_t {
  kNoError = 0x0,
  kProtocolError = 0x1,
  kInternalError = 0x2,
  kStreamClosed = 0x5,
  kRefusedStream = 0x7,
  kCancel = 0x8,
  kEnhanceYourCalm = 0xb,
};

class Endpoint {
 public:
  enum class Role : uint8_t { kServer, kClient };

  struct Options {
    uint32_t streams_max = 100;                // that are open, in SETTINGS of a server
    size_t head_bytes_max = size_t{64} << 10;  // in SETTINGS; the owner enforces it
  };

  // Called from within Receive and Send. These calls may use all functions of the endpoint except
  // Receive and Send.
  class Events {
   public:
    virtual void OnBlock(int32_t stream) = 0;  // a header block begins
    // Returns false to reset the stream with PROTOCOL_ERROR. No more calls for the block follow.
    virtual bool OnField(int32_t stream, std::string_view name, std::string_view value) = 0;
    virtual void OnBlockEnd(int32_t stream, bool ends_stream) = 0;
    virtual void OnData(int32_t stream, std::string_view bytes) = 0;
    virtual void OnStreamEnd(int32_t stream) = 0;               // by DATA
    virtual void OnPeerReset(int32_t stream) = 0;               // OnClosed follows
    virtual void OnSent(int32_t stream, bool ends_stream) = 0;  // HEADERS or DATA
    // The body of the stream has less than kWindowBytes again.
    virtual void OnRoom(int32_t stream) = 0;
    // No call for the stream follows.
    virtual void OnClosed(int32_t stream, ErrorCode error) = 0;
    // Called between the frames of Receive. Only here may the owner call code that it does not
    // control.
    virtual void AfterFrame() = 0;
    virtual void OnSettings() {}
    virtual void OnPingAnswered() {}
    virtual void OnGoaway() {}

   protected:
    ~Events() = default;
  };

  // `events` and `counters` must outlive the endpoint.
  Endpoint(Role role, const Options& options, Events& events, Counters& counters);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;

  void Receive(std::string_view bytes, base::Instant now);
  // Appends everything that may be sent. Judges provoked resets too.
  void Send(std::string& output, base::Instant now);
  // Tells how many bytes of the output so far are not sent yet.
  void SetBacklog(size_t bytes) { backlog_ = bytes; }
  size_t backlog() const { return backlog_; }
  // Whether Send would append something.
  bool wants_send() const;
  // Nothing can be sent or received any more: close the connection.
  bool finished() const;
  // A GOAWAY with an error has been sent or decided.
  bool failed() const { return failed_; }
  // Whether the input stops in the middle of the preface, a header block, or a frame other than
  // DATA.
  bool mid_message() const {
    return in_block_ || (!scan_.between_frames() && scan_.header().type != FrameType::kData);
  }

  // ---- Streams

  // `body` null: the head ends the stream. It must live until OnClosed.
  void SubmitHead(int32_t stream, const FieldList& fields, OutgoingBody* body);
  void SubmitInformational(int32_t stream, const FieldList& fields);
  // Returns 0 if there are no stream numbers left.
  int32_t SubmitRequest(const FieldList& fields, OutgoingBody* body, void* owner);
  // Call it after the body has changed.
  void Resume(int32_t stream);
  void Reset(int32_t stream, ErrorCode error);
  void Consume(int32_t stream, size_t bytes);
  void* OwnerOf(int32_t stream) const;
  void SetOwner(int32_t stream, void* owner);
  // Streams share the connection fairly, whatever priorities their client wants.
  void ShareFairly(int32_t stream);

  // ---- The connection

  // GOAWAY with an error, then the end.
  void Fail(ErrorCode error);
  // Closes with GOAWAY as soon as the streams have ended: a notice first, and a PING to learn when
  // the peer has seen it; then FinishDrain.
  void BeginDrain();
  void FinishDrain();
  // Settings of the peer.
  uint32_t peer_streams_max() const;
  bool peer_takes_tunnels() const;

  // Takes one event from a budget. Returns false, and fails, if there is none left.
  bool Afford(Flood kind, base::Instant now);
  void Flooded(Flood kind);

 private:
  struct Callbacks;
  friend struct Callbacks;

  // A stream that has closed lately.
  struct ClosedStream {
    int32_t stream;
    bool reset_here;  // the peer may not know yet
  };

  // Returns false if the frame must not be processed.
  bool Judge(const FrameHeader& frame, base::Instant now);
  bool JudgeBlock(const FrameHeader& frame);
  bool JudgeLate(const FrameHeader& frame);
  void NoteClosed(int32_t stream, bool reset_here);
  // Whether the peer has its whole answer. A reset of the stream cancels no work then, so the peer
  // gains nothing by provoking it.
  bool has_answered(int32_t stream) const;
  void ReleaseHeld();
  void Append(std::string_view bytes);

  const Role role_;
  const Options options_;
  Events& events_;
  Counters& counters_;
  FrameBuffer frame_buffer_;  // of a server
  nghttp2_session* session_ = nullptr;
  FrameScan scan_;
  FloodGuard guard_;
  bool in_block_ = false;
  bool broken_ = false;  // nghttp2 has given up
  bool failed_ = false;
  bool draining_ = false;
  int32_t newest_stream_ = 0;       // that the peer has opened
  int32_t last_taken_ = INT32_MAX;  // streams beyond it came after the last GOAWAY
  uint32_t block_bytes_ = 0;        // of the header block that is being received
  int block_frames_ = 0;
  std::vector<ClosedStream> closed_;  // a ring of streams_max
  size_t closed_next_ = 0;
  int32_t closed_latest_ = 0;
  base::Instant now_{};  // of the last Receive; never goes back
  size_t backlog_ = 0;
  std::string* output_ = nullptr;  // during Send
  std::vector<int32_t> held_;      // streams whose DATA waits for the backlog
  int provoked_ = 0;               // resets since the last judgement
};

}  // namespace headgate::http::http2
