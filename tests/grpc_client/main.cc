// Calls the server of tests/integration/sidecar_grpc.mjs with grpc++, and prints as JSON what it
// got. The only argument is the address. The messages are plain text, so there is no protobuf.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace {

constexpr std::chrono::seconds kPatience{20};

grpc::ByteBuffer ToBytes(const std::string& text) {
  const grpc::Slice slice(text);
  return {&slice, 1};
}

std::string ToText(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) return "";
  std::string text;
  for (const grpc::Slice& slice : slices)
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

std::string Value(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata,
                  const char* name) {
  const auto at = metadata.find(name);
  return at == metadata.end() ? "" : std::string(at->second.data(), at->second.size());
}

// One operation at a time is open, and each is awaited here.
class Waits {
 public:
  // False if the operation failed: at the end of the answers, for example.
  bool Done() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }
  grpc::CompletionQueue& queue() { return queue_; }

 private:
  grpc::CompletionQueue queue_;
};

class Client {
 public:
  explicit Client(const std::string& address)
      : channel_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())),
        stub_(channel_) {}

  nlohmann::json Unary(const std::string& text, std::chrono::milliseconds deadline = kPatience,
                       const std::string& echo = "") {
    grpc::ClientContext context;
    Prepare(context, deadline);
    if (!echo.empty()) context.AddMetadata("x-echo", echo);
    Waits waits;
    const auto call =
        stub_.PrepareUnaryCall(&context, "/test.Echo/Unary", ToBytes(text), &waits.queue());
    call->StartCall();
    grpc::ByteBuffer reply;
    grpc::Status status;
    call->Finish(&reply, &status, nullptr);
    waits.Done();
    nlohmann::json result = {{"code", status.error_code()}, {"details", status.error_message()}};
    if (!status.ok()) return result;
    result["reply"] = ToText(reply);
    result["trailer"] = Value(context.GetServerTrailingMetadata(), "x-trailer");
    if (!echo.empty()) result["echo"] = Value(context.GetServerInitialMetadata(), "x-echo");
    return result;
  }

  // Sends each text, and reads an answer after each if they take turns. Then reads the rest.
  nlohmann::json Stream(const std::string& method, const std::vector<std::string>& texts,
                        bool take_turns) {
    grpc::ClientContext context;
    Prepare(context, kPatience);
    Waits waits;
    const auto call = stub_.PrepareCall(&context, method, &waits.queue());
    call->StartCall(nullptr);
    waits.Done();
    std::vector<std::string> answers;
    const auto read = [&] {
      grpc::ByteBuffer bytes;
      call->Read(&bytes, nullptr);
      if (!waits.Done()) return false;
      answers.push_back(ToText(bytes));
      return true;
    };
    for (const std::string& text : texts) {
      call->Write(ToBytes(text), nullptr);
      if (!waits.Done() || (take_turns && !read())) break;
    }
    call->WritesDone(nullptr);
    waits.Done();
    while (read()) {
    }
    grpc::Status status;
    call->Finish(&status, nullptr);
    waits.Done();
    return {{"code", status.error_code()}, {"texts", answers}};
  }

  // Cancels a call whose answers have begun.
  nlohmann::json Cancelled() {
    grpc::ClientContext context;
    Prepare(context, kPatience);
    Waits waits;
    const auto call = stub_.PrepareCall(&context, "/test.Echo/Chat", &waits.queue());
    call->StartCall(nullptr);
    waits.Done();
    call->Write(ToBytes("a"), nullptr);
    waits.Done();
    grpc::ByteBuffer bytes;
    call->Read(&bytes, nullptr);
    waits.Done();
    context.TryCancel();
    grpc::Status status;
    call->Finish(&status, nullptr);
    waits.Done();
    return status.error_code();
  }

 private:
  static void Prepare(grpc::ClientContext& context, std::chrono::milliseconds deadline) {
    // gRPC adds it to its own clock.
    context.set_deadline(
        gpr_time_from_millis(static_cast<int64_t>(deadline.count()), GPR_TIMESPAN));
    context.AddMetadata("x-client-id", "ann");
  }

  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
};

nlohmann::json Ask(Client& client) {
  nlohmann::json result;
  result["unary"] = client.Unary("hello", kPatience, "who is there");
  result["large"] =
      client.Unary(std::string(size_t{1} << 20, 'x'))["reply"].get<std::string>().size();
  result["missing"] = client.Unary("missing");
  result["deadline"] = client.Unary("never", std::chrono::milliseconds(300))["code"];
  result["count"] = client.Stream("/test.Echo/Count", {"1000"}, false);
  result["chat"] = client.Stream("/test.Echo/Chat", {"a", "b", "c"}, true);
  result["cancelled"] = client.Cancelled();
  // The share is used up: the client has 20 requests in this cycle.
  for (int i = 0; i < 30 && !result.contains("refused"); ++i) {
    const nlohmann::json answer = client.Unary("again");
    if (answer["code"] != grpc::StatusCode::OK) result["refused"] = answer;
  }
  return result;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::cerr << "usage: grpc_client ADDRESS\n";
    return EXIT_FAILURE;
  }
  Client client(words[1]);
  std::cout << Ask(client).dump() << '\n';
  return EXIT_SUCCESS;
}
