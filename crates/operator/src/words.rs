//! What may be said of what an API server answered.
//!
//! *Guaranteed*: a text of bounded length, on one line. Of an object that holds secrets nothing is said but a code, a reason and the paths of fields: an API server repeats
//! the values that it refuses.

use kube::{Error, core::Status};

/// What is said about an object is said up to here.
const MAX_TEXT: usize = 600;
/// So many fields of an object with secrets are named.
const MAX_FIELDS: usize = 5;

/// Whether what was sent may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discretion {
    /// It may.
    Open,
    /// It holds secrets.
    Secret,
}

/// Why a request failed.
pub fn words(error: &Error, discretion: Discretion) -> String {
    match (error, discretion) {
        (Error::Api(status), Discretion::Open) => {
            let said = format!("the API server says {} {}: {}", status.code, status.reason, status.message);
            one_line(said.trim_end_matches([':', ' ']))
        }
        (Error::Api(status), Discretion::Secret) => {
            one_line(&format!("the API server says {} {}{}", status.code, status.reason, fields(status)))
        }
        (Error::SerdeError(_), _) => "what the API server answers cannot be understood".to_owned(),
        _ => "the API server cannot be reached".to_owned(),
    }
}

/// The fields that are refused, ` at data[a], type`.
fn fields(status: &Status) -> String {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let fields: Vec<&str> =
        causes.map(|cause| cause.field.as_str()).filter(|field| !field.is_empty()).take(MAX_FIELDS).collect();
    if fields.is_empty() { String::new() } else { format!(" at {}", fields.join(", ")) }
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_TEXT).collect()
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
        assert_eq!(words(&refused(), Discretion::Open), "the API server says 422 Invalid: Invalid value: \"planted\"");
        assert_eq!(words(&refused(), Discretion::Secret), "the API server says 422 Invalid at data[token]");
        let silent = Error::Api(Box::new(Status::failure("", "Conflict").with_code(409)));
        assert_eq!(words(&silent, Discretion::Open), "the API server says 409 Conflict");
        let long = Error::Api(Box::new(Status::failure(&"x".repeat(5000), "Invalid").with_code(422)));
        assert_eq!(words(&long, Discretion::Open).len(), MAX_TEXT);
    }
}
