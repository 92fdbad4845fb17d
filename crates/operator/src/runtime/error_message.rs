//! Messages about errors of the API server, for statuses and logs.
//!
//! *Guaranteed*: bounded length, on one line. For an object with secrets the message is only a code, a reason
//! and the paths of fields, since API servers repeat the values that they refuse.

use kube::{Error, core::Status};

const MAX_MESSAGE_CHARS: usize = 600;
/// The limit of the fields that are named for an object with secrets.
const MAX_NAMED_FIELDS: usize = 5;

/// Whether a message may contain the API server's own text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorDisclosure {
    Full,
    Redacted,
}

pub fn api_error_message(error: &Error, discretion: ErrorDisclosure) -> String {
    match (error, discretion) {
        (Error::Api(status), ErrorDisclosure::Full) => {
            let said = format!("the API server returned {} {}: {}", status.code, status.reason, status.message);
            to_one_line(said.trim_end_matches([':', ' ']))
        }
        (Error::Api(status), ErrorDisclosure::Redacted) => {
            to_one_line(&format!("the API server returned {} {}{}", status.code, status.reason, refused_fields(status)))
        }
        (Error::SerdeError(_), _) => "failed to parse the response of the API server".to_owned(),
        _ => "the API server cannot be reached".to_owned(),
    }
}

/// The refused fields, as ` at data[a], type`.
fn refused_fields(status: &Status) -> String {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let fields: Vec<&str> =
        causes.map(|cause| cause.field.as_str()).filter(|field| !field.is_empty()).take(MAX_NAMED_FIELDS).collect();
    if fields.is_empty() { String::new() } else { format!(" at {}", fields.join(", ")) }
}

fn to_one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_MESSAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use kube::core::response::{StatusCause, StatusDetails};

    use super::*;

    fn refused() -> Error {
        let cause = StatusCause { field: "data[token]".into(), message: "planted".into(), reason: "Invalid".into() };
        let [name, group, kind, uid] = std::array::from_fn(|_| String::new());
        let details = StatusDetails { name, group, kind, uid, causes: vec![cause], retry_after_seconds: 0 };
        Error::Api(Box::new(Status {
            details: Some(details),
            ..Status::failure("Invalid value:\n\"planted\"", "Invalid").with_code(422)
        }))
    }

    #[test]
    fn what_holds_secrets_is_not_repeated() {
        assert_eq!(
            api_error_message(&refused(), ErrorDisclosure::Full),
            "the API server returned 422 Invalid: Invalid value: \"planted\""
        );
        assert_eq!(
            api_error_message(&refused(), ErrorDisclosure::Redacted),
            "the API server returned 422 Invalid at data[token]"
        );
        let silent = Error::Api(Box::new(Status::failure("", "Conflict").with_code(409)));
        assert_eq!(api_error_message(&silent, ErrorDisclosure::Full), "the API server returned 409 Conflict");
        let long = Error::Api(Box::new(Status::failure(&"x".repeat(5000), "Invalid").with_code(422)));
        assert_eq!(api_error_message(&long, ErrorDisclosure::Full).len(), MAX_MESSAGE_CHARS);
    }
}
