//! Query parameters: the options of every verb, and the tokens of paged lists.
//!
//! Parameters are read as kube-apiserver reads them: the first of several counts, unknown ones do not, and a pair that cannot be
//! decoded is as if it were not there.

mod delete;
mod list;
mod token;
mod write;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::api::{GroupKind, Status, field, go};

pub use self::{
    delete::{DeleteOptions, Propagation},
    list::{GetOptions, ListOptions, VersionMatch},
    token::Continue,
    write::{FieldValidation, WriteOptions},
};

/// The parameters of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query<'q> {
    pairs: Vec<(Cow<'q, str>, Cow<'q, str>)>,
}

impl<'q> Query<'q> {
    /// Reads what is behind the `?`.
    pub fn parse(query: &'q str) -> Self {
        let pairs = query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')).filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((percent_decode(name)?, percent_decode(value)?))
        });
        Self { pairs: pairs.collect() }
    }

    /// The first value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All values of a parameter.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// A boolean: everything but `false` and `0` is true.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.get(name).map(|text| text != "0" && !text.eq_ignore_ascii_case("false"))
    }

    /// A whole number.
    ///
    /// # Errors
    /// A 400 with kube-apiserver's words.
    pub fn int(&self, name: &str) -> Result<Option<i64>, Status> {
        self.get(name).map(go::parse_int).transpose().map_err(Status::bad_request)
    }

    fn text(&self, name: &str) -> String {
        self.get(name).unwrap_or_default().to_owned()
    }
}

/// Undoes `%XX` and `+`. `None` if it is malformed.
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

/// Refuses options that break rules.
fn check(kind: &str, errors: &[field::Error]) -> Result<(), Status> {
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(&GroupKind::new("meta.k8s.io", kind), "", errors)) }
}

/// `dryRun`, which may only be `All`.
fn check_dry_run(values: &[String], errors: &mut field::Errors) {
    if values.iter().any(|value| value != "All") {
        errors.push(field::Error::not_supported("dryRun", &values.into(), &["All"]));
    }
}
