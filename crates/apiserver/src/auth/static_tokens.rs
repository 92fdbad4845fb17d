//! `--token-auth-file`: bearer tokens in a CSV file, in kube-apiserver's format: `token,user,uid,"group1,group2"`.
//!
//! Tokens are kept and looked up as their SHA-256, so that the time of a look-up says nothing about them and the memory of the
//! process does not hold them.

use std::{collections::HashMap, fmt, path::Path, sync::Arc};

use aws_lc_rs::{constant_time, digest};
use futures_util::future::BoxFuture;

use super::{
    User,
    authenticate::{Authenticator, Identity, audiences_for},
};

/// The users of a token file.
#[derive(Default)]
pub struct StaticTokens {
    by_digest: HashMap<[u8; 32], User>,
    audiences: Arc<[String]>,
}

/// What is wrong with a token file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error("cannot read the token file {path}")]
    Read {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A record is too short.
    #[error("token file '{path}' must have at least 3 columns (token, user name, user uid), found {found}")]
    Columns {
        /// Which file.
        path: String,
        /// How many columns there are.
        found: usize,
    },
    /// It is no CSV.
    #[error("token file '{path}': parse error on line {line}: {what}")]
    Csv {
        /// Which file.
        path: String,
        /// Counted from one.
        line: usize,
        /// What is wrong.
        what: &'static str,
    },
}

impl StaticTokens {
    /// Reads a file. `audiences` are the server's own: static tokens are good for them and no others.
    pub fn load(path: &Path, audiences: Arc<[String]>) -> Result<Self, Error> {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read { path: shown.clone(), source })?;
        Self::parse(&shown, &text, audiences)
    }

    /// Reads the text of a file; `path` is for messages.
    pub fn parse(path: &str, text: &str, audiences: Arc<[String]>) -> Result<Self, Error> {
        let mut tokens = Self { audiences, ..Self::default() };
        let records = records(text).map_err(|(line, what)| Error::Csv { path: path.into(), line, what })?;
        for (number, record) in records.iter().enumerate() {
            let [token, name, uid, rest @ ..] = record.as_slice() else {
                return Err(Error::Columns { path: path.into(), found: record.len() });
            };
            if token.is_empty() {
                tracing::warn!(path, record = number + 1, "empty token in the token file");
                continue;
            }
            let groups = rest.first().map_or(Vec::new(), |groups| groups.split(',').collect());
            if tokens.insert(token, User::new(name, groups).with_uid(uid)).is_some() {
                tracing::warn!(path, record = number + 1, "duplicate token in the token file");
            }
        }
        Ok(tokens)
    }

    /// Adds a token. The last one of several that are the same counts.
    pub fn insert(&mut self, token: &str, user: User) -> Option<User> {
        self.by_digest.insert(sha256(token), user.authenticated())
    }

    /// Whose token this is.
    pub fn user(&self, token: &str) -> Option<&User> {
        let digest = sha256(token);
        let (known, user) = self.by_digest.get_key_value(&digest)?;
        constant_time::verify_slices_are_equal(known, &digest).is_ok().then_some(user)
    }
}

impl Authenticator for StaticTokens {
    fn authenticate<'a>(
        &'a self,
        token: &'a str,
        audiences: Option<&'a [String]>,
    ) -> BoxFuture<'a, Result<Option<Identity>, String>> {
        let identity = self.user(token).and_then(|user| {
            let audiences = audiences_for(&self.audiences, audiences)?;
            Some(Identity { user: user.clone(), audiences })
        });
        Box::pin(std::future::ready(Ok(identity)))
    }
}

impl fmt::Debug for StaticTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StaticTokens({})", self.by_digest.len())
    }
}

fn sha256(token: &str) -> [u8; 32] {
    let digest = digest::digest(&digest::SHA256, token.as_bytes());
    digest.as_ref().try_into().unwrap_or_default()
}

/// The records of a CSV text, without empty lines. Quoted fields may hold commas, line breaks and doubled quotes.
fn records(text: &str) -> Result<Vec<Vec<String>>, (usize, &'static str)> {
    let (mut all, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut line, mut started) = (1, 1);
    let mut chars = text.chars().peekable();
    // Whether the field is quoted, and whether its quotes are closed.
    let (mut quoted, mut closed) = (false, false);
    loop {
        let next = chars.next();
        line += usize::from(next == Some('\n'));
        match next {
            None if quoted && !closed => return Err((started, "extraneous or missing \" in quoted-field")),
            Some('"') if quoted && !closed && chars.next_if_eq(&'"').is_some() => field.push('"'),
            Some('"') if quoted && !closed => closed = true,
            Some(other) if quoted && !closed => field.push(other),
            Some('"') if field.is_empty() && !quoted => (quoted, started) = (true, line),
            Some('"') if !quoted => return Err((line, "bare \" in non-quoted field")),
            Some('\r') if chars.peek().is_none_or(|next| *next == '\n') => {}
            None | Some('\n' | ',') => {
                let empty_line = next != Some(',') && record.is_empty() && field.is_empty() && !quoted;
                if !empty_line {
                    record.push(std::mem::take(&mut field));
                }
                (quoted, closed) = (false, false);
                if next != Some(',') && !record.is_empty() {
                    all.push(std::mem::take(&mut record));
                }
                if next.is_none() {
                    return Ok(all);
                }
            }
            Some(_) if closed => return Err((line, "extraneous or missing \" in quoted-field")),
            Some(other) => field.push(other),
        }
    }
}

#[cfg(test)]
mod tests;
