//! `--token-auth-file`: bearer tokens in a CSV file in kube-apiserver's format,
//! `token,user,uid,"group1,group2"`.
//!
//! Tokens are stored and looked up by their SHA-256, so that the time of a look-up reveals nothing about them
//! and they are not in memory.

use std::{collections::HashMap, fmt, path::Path, sync::Arc};

use aws_lc_rs::{constant_time, digest};
use futures_util::future::BoxFuture;

use super::{
    UserInfo,
    authenticate::{TokenAuthenticator, TokenIdentity, intersect_audiences},
};

/// The users of a token file.
#[derive(Default)]
pub struct StaticTokens {
    by_digest: HashMap<[u8; 32], UserInfo>,
    audiences: Arc<[String]>,
}

/// An error in a token file.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    #[error("failed to read token file {path}")]
    Read { path: String, source: std::io::Error },
    #[error("token file '{path}' must have at least 3 columns (token, user name, user uid), found {found}")]
    Columns {
        path: String,
        /// The number of columns in that line.
        found: usize,
    },
    #[error("token file '{path}': parse error on line {line}: {what}")]
    Csv { path: String, line: usize, what: &'static str },
}

impl StaticTokens {
    /// Reads a file. `audiences` are the server's own: static tokens are valid only for them.
    pub fn load(path: &Path, audiences: Arc<[String]>) -> Result<Self, TokenFileError> {
        let shown = path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|source| TokenFileError::Read { path: shown.clone(), source })?;
        Self::parse(&shown, &text, audiences)
    }

    /// Parses the text of a file; `path` is for messages.
    pub fn parse(path: &str, text: &str, audiences: Arc<[String]>) -> Result<Self, TokenFileError> {
        let mut tokens = Self { audiences, ..Self::default() };
        let records = records(text).map_err(|(line, what)| TokenFileError::Csv { path: path.into(), line, what })?;
        for (number, record) in records.iter().enumerate() {
            let [token, name, uid, rest @ ..] = record.as_slice() else {
                return Err(TokenFileError::Columns { path: path.into(), found: record.len() });
            };
            if token.is_empty() {
                tracing::warn!(path, record = number + 1, "empty token in the token file");
                continue;
            }
            let groups = rest.first().map_or(Vec::new(), |groups| groups.split(',').collect());
            if tokens.insert(token, UserInfo::new(name, groups).with_uid(uid)).is_some() {
                tracing::warn!(path, record = number + 1, "duplicate token in the token file");
            }
        }
        Ok(tokens)
    }

    /// Adds a token. Of duplicates the last one counts.
    pub fn insert(&mut self, token: &str, user: UserInfo) -> Option<UserInfo> {
        self.by_digest.insert(sha256(token), user.with_authenticated_group())
    }

    pub fn user(&self, token: &str) -> Option<&UserInfo> {
        let digest = sha256(token);
        let (known, user) = self.by_digest.get_key_value(&digest)?;
        constant_time::verify_slices_are_equal(known, &digest).is_ok().then_some(user)
    }
}

impl TokenAuthenticator for StaticTokens {
    fn authenticate<'a>(
        &'a self,
        token: &'a str,
        audiences: Option<&'a [String]>,
    ) -> BoxFuture<'a, Result<Option<TokenIdentity>, String>> {
        let identity = self.user(token).and_then(|user| {
            let audiences = intersect_audiences(&self.audiences, audiences)?;
            Some(TokenIdentity { user: user.clone(), audiences })
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

/// The records of a CSV text, without empty lines. Quoted fields may have commas, line breaks and doubled
/// quotes.
fn records(text: &str) -> Result<Vec<Vec<String>>, (usize, &'static str)> {
    let mut all = Vec::new();
    let mut record = Vec::new();
    let mut field = String::new();
    let mut line = 1;
    let mut started = 1;
    let mut chars = text.chars().peekable();
    // Whether the field is quoted, and whether its quotes are closed.
    let mut quoted = false;
    let mut closed = false;
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
