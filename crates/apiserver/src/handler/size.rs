//! Objects that kube-apiserver could not store: etcd takes no larger requests.

use http::StatusCode;
use serde_json::Value;

use super::call::On;
use crate::{
    api::{Status, meta::remove_meta},
    codec::protobuf,
};

/// The largest request that etcd takes, in bytes.
const MAX_ETCD_REQUEST_BYTES: usize = 3 << 19;
/// The largest message that kube-apiserver's client of etcd sends, in bytes.
const MAX_ETCD_MESSAGE_BYTES: usize = 2 << 20;
/// What a transaction has around the key, which it has three times, and the value.
const TRANSACTION_OVERHEAD_BYTES: usize = 48;

/// Refuses an object that is too large. Unless its books are all that an apply is about, they are given up first, as they may be what
/// is too much.
pub fn fit(on: On<'_>, object: &mut Value, name: &str, keep_managers: bool) -> Result<(), Status> {
    if request_bytes(on, object, name) <= MAX_ETCD_REQUEST_BYTES {
        return Ok(());
    }
    if !keep_managers {
        remove_meta(object, "managedFields");
    }
    match request_bytes(on, object, name) {
        bytes if bytes > MAX_ETCD_MESSAGE_BYTES => {
            let why = format!("trying to send message larger than max ({bytes} vs. {MAX_ETCD_MESSAGE_BYTES})");
            Err(refused(format!("rpc error: code = ResourceExhausted desc = {why}")))
        }
        bytes if bytes > MAX_ETCD_REQUEST_BYTES => Err(refused("etcdserver: request is too large".to_owned())),
        _ => Ok(()),
    }
}

fn refused(message: String) -> Status {
    Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
}

/// About how large a request to etcd would be. Built-in kinds are stored as protobuf, which is only written where JSON is too large.
fn request_bytes(on: On<'_>, object: &Value, name: &str) -> usize {
    let around = 3 * on.registry_key(name).len() + TRANSACTION_OVERHEAD_BYTES;
    let json = counted(object) + around;
    if json <= MAX_ETCD_REQUEST_BYTES || on.resource.custom.is_some() {
        return json;
    }
    let mut object = object.clone();
    super::answer::stamp(on.resource, &mut object);
    protobuf::encode(&object).map_or(json, |bytes| bytes.len() + around)
}

/// The length of a value as JSON, which is not kept.
fn counted(value: &Value) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // A counter takes everything.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}
