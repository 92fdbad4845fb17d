//! Query parameters: the options of every verb, and the tokens of paged lists.
//!
//! Parameters are parsed as in kube-apiserver: the first of duplicates counts, unknown ones are ignored, and so
//! are pairs that cannot be decoded.

mod continue_token;
mod delete;
mod list;
mod log;
mod write;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::api::{GroupKind, StatusError, field, go_format};

pub use self::{
    continue_token::ContinueToken,
    delete::{DeleteOptions, DeletionPropagation},
    list::{GetOptions, ListOptions, ResourceVersionMatch},
    log::{LogOptions, LogSince},
    write::{FieldValidation, WriteOptions},
};

/// The parameters of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryParameters<'q> {
    pairs: Vec<(Cow<'q, str>, Cow<'q, str>)>,
}

impl<'q> QueryParameters<'q> {
    /// Parses the text after the `?`.
    pub fn parse(query: &'q str) -> Self {
        let pairs = query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')).filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((percent_decode(name)?, percent_decode(value)?))
        });
        Self { pairs: pairs.collect() }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// A boolean: everything but `false` and `0` is true.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).map(|text| text != "0" && !text.eq_ignore_ascii_case("false"))
    }

    /// An integer.
    ///
    /// # Errors
    /// A 400 with kube-apiserver's message.
    pub fn int(&self, name: &str) -> Result<Option<i64>, StatusError> {
        self.get(name).map(go_format::parse_int).transpose().map_err(StatusError::bad_request)
    }

    fn text(&self, name: &str) -> String {
        self.get(name).unwrap_or_default().to_owned()
    }
}

/// Decodes `%XX` and `+`. `None` if malformed.
fn percent_decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains(['%', '+']) {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                bytes.push(u8::try_from(high * 16 + low).ok()?);
            }
            byte => bytes.push(byte),
        }
    }
    Some(Cow::Owned(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into())))
}

/// The error of invalid options.
fn check(kind: &str, errors: &[field::FieldError]) -> Result<(), StatusError> {
    if errors.is_empty() { Ok(()) } else { Err(StatusError::invalid(&GroupKind::new("meta.k8s.io", kind), "", errors)) }
}

/// `dryRun`, which may only be `All`.
fn check_dry_run(values: &[String], errors: &mut field::FieldErrors) {
    if values.iter().any(|value| value != "All") {
        errors.push(field::FieldError::not_supported("dryRun", &values.into(), &["All"]));
    }
}
