//! Users and passwords as Apache's `htpasswd` writes them: plain, `{SHA}` and bcrypt.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
};

use aws_lc_rs::{
    digest,
    hmac::{self, HMAC_SHA256},
    rand::SystemRandom,
};
use base64::{Engine, engine::general_purpose::STANDARD};

use crate::{components::BuildError, net::request::credential::same};

/// bcrypt is slow on purpose, some 50 ms. This many answers are remembered, 32 bytes each, so that senders that repeat
/// themselves, with the right password or a wrong one, cost a hash once.
const MAX_REMEMBERED: usize = 1024;

type Digest = [u8; 32];

/// Who may come in.
#[derive(Default)]
pub(super) struct Users {
    entries: HashMap<String, Entry>,
    remembered: Remembered,
}

enum Entry {
    Plain(String),
    Sha1(Vec<u8>),
    Bcrypt(String),
}

impl Users {
    /// Adds the entries of a text; an entry replaces an earlier one of the same name. `place` is where it comes from.
    pub(super) fn add(&mut self, text: &str, place: &str) -> Result<(), BuildError> {
        for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line.trim())) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = |why: &str| BuildError(format!("{place}, line {number}: {why}"));
            let (name, password) = line.split_once(':').ok_or_else(|| bad("there is no colon behind the name"))?;
            let entry = Entry::parse(password).map_err(bad)?;
            self.entries.insert(name.to_owned(), entry);
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the password is the user's.
    pub(super) fn check(&self, name: &str, password: &str) -> bool {
        match self.entries.get(name) {
            None => false,
            Some(Entry::Plain(expected)) => same(expected.as_bytes(), password.as_bytes()),
            Some(Entry::Sha1(expected)) => {
                let actual = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, password.as_bytes());
                same(expected, actual.as_ref())
            }
            Some(Entry::Bcrypt(hash)) => {
                self.remembered.recall(name, password, || bcrypt::verify(password, hash).unwrap_or(false))
            }
        }
    }
}

impl Entry {
    fn parse(text: &str) -> Result<Self, &'static str> {
        if let Some(encoded) = text.strip_prefix("{SHA}") {
            let hash = STANDARD.decode(encoded).ok().filter(|hash| hash.len() == digest::SHA1_OUTPUT_LEN);
            return hash.map(Entry::Sha1).ok_or("behind {SHA} stands no SHA-1 hash");
        }
        if ["$2a$", "$2b$", "$2x$", "$2y$"].iter().any(|prefix| text.starts_with(prefix)) {
            let valid = text.parse::<bcrypt::HashParts>().is_ok();
            return valid.then(|| Entry::Bcrypt(text.to_owned())).ok_or("the bcrypt hash is not valid");
        }
        if text.starts_with("{SSHA}") || text.starts_with('$') {
            return Err("only bcrypt, {SHA} and plain passwords are supported: make the entry with htpasswd -B");
        }
        if text.is_empty() { Err("the password is empty") } else { Ok(Entry::Plain(text.to_owned())) }
    }
}

/// What bcrypt said, by a keyed hash of name and password: who reads the memory learns nothing, and nobody can choose
/// credentials that collide.
struct Remembered {
    key: hmac::Key,
    answers: Mutex<Answers>,
}

#[derive(Default)]
struct Answers {
    right: HashSet<Digest>,
    wrong: HashSet<Digest>,
}

impl Default for Remembered {
    fn default() -> Self {
        // Without randomness the key is the same everywhere, which costs only the second guarantee.
        let key = hmac::Key::generate(HMAC_SHA256, &SystemRandom::new())
            .unwrap_or_else(|_| hmac::Key::new(HMAC_SHA256, b"basicauth"));
        Self { key, answers: Mutex::default() }
    }
}

impl Remembered {
    fn recall(&self, name: &str, password: &str, verify: impl FnOnce() -> bool) -> bool {
        let digest = self.digest(name, password);
        {
            let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            if answers.right.contains(&digest) {
                return true;
            }
            if answers.wrong.contains(&digest) {
                return false;
            }
        }
        // Not under the lock: those who are remembered do not wait for those who are not.
        let right = verify();
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = if right { &mut answers.right } else { &mut answers.wrong };
        // Each kind by itself, so that guesses do not push out those who know.
        if kind.len() >= MAX_REMEMBERED {
            kind.clear();
        }
        kind.insert(digest);
        right
    }

    fn digest(&self, name: &str, password: &str) -> Digest {
        let mut context = hmac::Context::with_key(&self.key);
        // A name holds no colon, so the two cannot run into each other.
        [name, ":", password].iter().for_each(|piece| context.update(piece.as_bytes()));
        context.sign().as_ref().try_into().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_remembered_right_or_wrong() {
        let remembered = Remembered::default();
        for right in [true, false] {
            let password = format!("{right}");
            assert_eq!(remembered.recall("ada", &password, || right), right);
            assert_eq!(remembered.recall("ada", &password, || panic!("asked twice")), right);
            assert!(remembered.recall("bob", &password, || true), "another user has another answer");
        }
    }

    #[test]
    fn a_flood_of_guesses_is_forgotten_and_those_who_know_are_not() {
        let remembered = Remembered::default();
        remembered.recall("ada", "right", || true);
        for guess in 0..3 * MAX_REMEMBERED {
            remembered.recall("ada", &guess.to_string(), || false);
        }
        assert!(remembered.answers.lock().unwrap().wrong.len() <= MAX_REMEMBERED);
        assert!(remembered.recall("ada", "right", || panic!("asked twice")));
    }
}
