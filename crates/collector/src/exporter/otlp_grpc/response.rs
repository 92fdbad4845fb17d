//! Maps the response of a call to a result.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use http::{HeaderMap, StatusCode, response::Parts};

use super::PREFIX_BYTES;
use crate::{
    core::{BackendStatus, Code, ErrorClass, SendError, SendSuccess, TlsFault},
    net::{
        request::BoundedResponse,
        response_status::{self, RpcStatus},
    },
};

/// By gRPC, binary headers come with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Success with rejected items, or an error whose message does not name the endpoint yet.
pub(super) fn send_result(head: &Parts, answer: &BoundedResponse) -> Result<SendSuccess, SendError> {
    // A call that fails at once ends with its headers ("trailers-only"); any other with trailers.
    let trailers = answer.trailers.as_ref().filter(|trailers| trailers.contains_key("grpc-status"));
    let ending = trailers.unwrap_or(&head.headers);
    match ending.get("grpc-status") {
        None => Err(non_grpc_error(head.status, answer)),
        Some(status) if status.as_bytes() == b"0" => Ok(delivered(&answer.bytes)),
        Some(status) => {
            let number = status.to_str().ok().and_then(|status| status.parse().ok());
            Err(grpc_error(number.map_or(Code::Unknown, Code::from_number), ending))
        }
    }
}

/// The status is OK, which is decisive: an unreadable message reports no rejections.
fn delivered(body: &[u8]) -> SendSuccess {
    match body.split_at_checked(PREFIX_BYTES) {
        Some(([0, ..], message)) => response_status::parse_export_response(message).unwrap_or_default(),
        _ => SendSuccess::default(),
    }
}

fn grpc_error(code: Code, ending: &HeaderMap) -> SendError {
    let details = ending.get("grpc-status-details-bin").and_then(|value| BASE64.decode(value.as_bytes()).ok());
    let status = details.and_then(|bytes| RpcStatus::from_protobuf(&bytes)).unwrap_or_default();
    let message = ending
        .get("grpc-message")
        .map(|value| response_status::clip_message(&response_status::percent_decoded(value.as_bytes())));
    let message = message.filter(|message| !message.is_empty()).unwrap_or(status.message);
    SendError {
        code,
        class: ErrorClass::from(code),
        backend_status: Some(BackendStatus::Grpc(code)),
        message: format!("{code:?} {message}").trim_end().to_owned().into(),
        retry_after: status.retry_delay,
        retryable: code.is_retryable(status.retry_delay.is_some()),
        partial: None,
    }
}

/// The response of a server that does not speak gRPC, mapped by gRPC's specification.
fn non_grpc_error(status: StatusCode, answer: &BoundedResponse) -> SendError {
    let code = match status.as_u16() {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502 | 503 | 504 => Code::Unavailable,
        _ => Code::Unknown,
    };
    let why = if answer.complete { "no gRPC status" } else { "a message that is too large" };
    let said = if answer.wants_certificate() {
        BackendStatus::Tls(TlsFault::CertificateWanted)
    } else {
        BackendStatus::Http(status)
    };
    SendError {
        code,
        class: if code == Code::Unknown { ErrorClass::Protocol } else { ErrorClass::from(code) },
        backend_status: Some(said),
        message: format!("HTTP {} with {why}", status.as_u16()).into(),
        retry_after: None,
        retryable: code.is_retryable(false),
        partial: None,
    }
}
