//! What the answer to a call means.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use http::{HeaderMap, StatusCode, response::Parts};

use super::PREFIX;
use crate::{
    core::{Code, Delivered, ErrorClass, Said, SendError, TlsFault},
    net::{
        request::Answer,
        status::{self, Status},
    },
};

/// gRPC says that binary headers come with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Success with what came of it, or an error whose message does not yet say who answered.
pub(super) fn settle(head: &Parts, answer: &Answer) -> Result<Delivered, SendError> {
    // A call that fails at once ends with its headers; any other with trailers.
    let trailers = answer.trailers.as_ref().filter(|trailers| trailers.contains_key("grpc-status"));
    let ending = trailers.unwrap_or(&head.headers);
    match ending.get("grpc-status") {
        None => Err(no_grpc(head.status, answer)),
        Some(status) if status.as_bytes() == b"0" => Ok(delivered(&answer.bytes)),
        Some(status) => {
            let number = status.to_str().ok().and_then(|status| status.parse().ok());
            Err(refused(number.map_or(Code::Unknown, Code::from_number), ending))
        }
    }
}

/// The destination said OK, so that is what counts: a message that cannot be read tells of no rejections.
fn delivered(body: &[u8]) -> Delivered {
    match body.split_at_checked(PREFIX) {
        Some(([0, ..], message)) => status::delivered(message).unwrap_or_default(),
        _ => Delivered::default(),
    }
}

fn refused(code: Code, ending: &HeaderMap) -> SendError {
    let details = ending.get("grpc-status-details-bin").and_then(|value| BASE64.decode(value.as_bytes()).ok());
    let status = details.and_then(|bytes| Status::from_protobuf(&bytes)).unwrap_or_default();
    let message = ending.get("grpc-message").map(|value| status::clip(&status::percent_decoded(value.as_bytes())));
    let message = message.filter(|message| !message.is_empty()).unwrap_or(status.message);
    SendError {
        code,
        class: ErrorClass::from(code),
        said: Some(Said::Grpc(code)),
        message: format!("{code:?} {message}").trim_end().to_owned().into(),
        retry_after: status.retry_delay,
        retryable: code.is_retryable(status.retry_delay.is_some()),
    }
}

/// An answer from something that does not speak gRPC, mapped as gRPC's specification says.
fn no_grpc(status: StatusCode, answer: &Answer) -> SendError {
    let code = match status.as_u16() {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502 | 503 | 504 => Code::Unavailable,
        _ => Code::Unknown,
    };
    let why = if answer.complete { "no gRPC status" } else { "a message that is too large" };
    let said = match answer.wants_certificate() {
        true => Said::Tls(TlsFault::CertificateWanted),
        false => Said::Http(status),
    };
    SendError {
        code,
        class: if code == Code::Unknown { ErrorClass::Protocol } else { ErrorClass::from(code) },
        said: Some(said),
        message: format!("HTTP {} with {why}", status.as_u16()).into(),
        retry_after: None,
        retryable: code.is_retryable(false),
    }
}
