//! `google.rpc.Status`, the body of OTLP error responses.

use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use kubewake_otlp::wire::{put_bytes, put_uint};

use crate::core::Refusal;

const RETRY_INFO_TYPE_URL: &str = "type.googleapis.com/google.rpc.RetryInfo";

pub(super) fn protobuf(refusal: &Refusal) -> Bytes {
    let mut out = Vec::with_capacity(refusal.message.len() + 64);
    put_uint(&mut out, 1, u64::from(refusal.code.number()));
    put_bytes(&mut out, 2, refusal.message.as_bytes());
    if let Some(after) = refusal.retry_after {
        let mut info = Vec::new();
        put_bytes(&mut info, 1, &duration(after));
        let mut any = Vec::new();
        put_bytes(&mut any, 1, RETRY_INFO_TYPE_URL.as_bytes());
        put_bytes(&mut any, 2, &info);
        put_bytes(&mut out, 3, &any);
    }
    out.into()
}

pub(super) fn json(refusal: &Refusal) -> Bytes {
    let mut status = serde_json::json!({ "code": refusal.code.number(), "message": refusal.message });
    if let (Some(after), Some(object)) = (refusal.retry_after, status.as_object_mut()) {
        let detail =
            serde_json::json!([{ "@type": RETRY_INFO_TYPE_URL, "retryDelay": format!("{}s", after.as_secs_f64()) }]);
        object.insert("details".into(), detail);
    }
    status.to_string().into()
}

/// The status message as the value of `grpc-status-details-bin`.
pub(super) fn details_header(refusal: &Refusal) -> String {
    base64::engine::general_purpose::STANDARD_NO_PAD.encode(protobuf(refusal))
}

fn duration(of: Duration) -> Vec<u8> {
    let mut out = Vec::new();
    put_uint(&mut out, 1, of.as_secs());
    put_uint(&mut out, 2, u64::from(of.subsec_nanos()));
    out
}
