// Changes a document that is a node of an ensemble, if it still has the version that is expected.
#pragma once

#include "headgate/client/zookeeper/client.h"
#include "headgate/rule/source.h"

namespace headgate::watch::zookeeper {

// As rule::Source::Write; the document's name is the path of its node. `client` must outlive the
// call.
void WriteDocument(client::zookeeper::Client& client, const rule::DocumentChange& change,
                   rule::Source::OnWritten done);

}  // namespace headgate::watch::zookeeper
