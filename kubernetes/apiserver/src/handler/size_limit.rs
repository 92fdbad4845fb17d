//! Refuses objects that are too large for etcd, and thus for kube-apiserver.

use http::StatusCode;
use serde_json::Value;

use super::call::ResourceRequest;
use crate::{
    api::{StatusError, meta::remove_meta},
    codec::protobuf,
};

/// The largest request that etcd takes, in bytes.
const MAX_ETCD_REQUEST_BYTES: usize = 3 << 19;
/// The largest message that kube-apiserver's client of etcd sends, in bytes.
const MAX_ETCD_MESSAGE_BYTES: usize = 2 << 20;
/// The overhead of a transaction beside the key, which it contains three times, and the value.
const TRANSACTION_OVERHEAD_BYTES: usize = 48;

/// Refuses an object that is too large. Unless `keep_managers` is set, as for apply, `managedFields` are
/// dropped first, since they may be the excess.
pub fn enforce_size_limit(
    on: ResourceRequest<'_>,
    object: &mut Value,
    name: &str,
    keep_managers: bool,
) -> Result<(), StatusError> {
    if request_bytes(on, object, name) <= MAX_ETCD_REQUEST_BYTES {
        return Ok(());
    }
    if !keep_managers {
        remove_meta(object, "managedFields");
    }
    match request_bytes(on, object, name) {
        bytes if bytes > MAX_ETCD_MESSAGE_BYTES => {
            let why = format!("trying to send message larger than max ({bytes} vs. {MAX_ETCD_MESSAGE_BYTES})");
            Err(too_large_status(format!("rpc error: code = ResourceExhausted desc = {why}")))
        }
        bytes if bytes > MAX_ETCD_REQUEST_BYTES => Err(too_large_status("etcdserver: request is too large".to_owned())),
        _ => Ok(()),
    }
}

fn too_large_status(message: String) -> StatusError {
    StatusError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
}

/// The approximate size of a request to etcd. Built-in kinds are stored as protobuf, which is only encoded
/// where JSON is too large.
fn request_bytes(on: ResourceRequest<'_>, object: &Value, name: &str) -> usize {
    let around = 3 * on.registry_key(name).len() + TRANSACTION_OVERHEAD_BYTES;
    let json = json_length(object) + around;
    if json <= MAX_ETCD_REQUEST_BYTES || on.resource.custom.is_some() {
        return json;
    }
    let mut object = object.clone();
    super::handler_response::set_type_meta(on.resource, &mut object);
    protobuf::encode(&object).map_or(json, |bytes| bytes.len() + around)
}

/// The length of a value as JSON, without building it.
fn json_length(value: &Value) -> usize {
    struct ByteCounter(usize);
    impl std::io::Write for ByteCounter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = ByteCounter(0);
    // Writing to the counter cannot fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}
