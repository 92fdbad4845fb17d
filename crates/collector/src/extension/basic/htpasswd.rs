//! Users and passwords as Apache's `htpasswd` writes them: plain, `{SHA}` and bcrypt.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use aws_lc_rs::{
    digest,
    hmac::{self, HMAC_SHA256},
    rand::SystemRandom,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use tokio::sync::Semaphore;

use crate::{components::BuildError, net::request::credential::same};

/// bcrypt is slow on purpose, some 50 ms. This many answers are remembered, 32 bytes each, so that senders that repeat
/// themselves, with the right password or a wrong one, cost a hash once.
const MAX_REMEMBERED: usize = 1024;

/// bcrypt hashes that are computed at once. Guesses cost the machine no more than this many cores; further ones wait.
const AT_ONCE: usize = 2;

type Digest = [u8; 32];

/// Who may come in.
pub(super) struct Users {
    entries: HashMap<String, Entry>,
    remembered: Remembered,
    places: Arc<Semaphore>,
}

impl Default for Users {
    fn default() -> Self {
        Self { entries: HashMap::new(), remembered: Remembered::default(), places: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

/// Whether a password is right.
pub(super) enum Checked {
    /// Known at once.
    Now(bool),
    /// Known when a hash was computed, on a thread that nobody else waits for.
    Later(Pin<Box<dyn Future<Output = bool> + Send>>),
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
    pub(super) fn check(self: &Arc<Self>, name: &str, password: &str) -> Checked {
        match self.entries.get(name) {
            None => Checked::Now(false),
            Some(Entry::Plain(expected)) => Checked::Now(same(expected.as_bytes(), password.as_bytes())),
            Some(Entry::Sha1(expected)) => {
                let actual = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, password.as_bytes());
                Checked::Now(same(expected, actual.as_ref()))
            }
            Some(Entry::Bcrypt(hash)) => {
                let digest = self.remembered.digest(name, password);
                match self.remembered.recall(&digest) {
                    Some(right) => Checked::Now(right),
                    None => Checked::Later(Box::pin(self.clone().verify(digest, password.to_owned(), hash.clone()))),
                }
            }
        }
    }

    async fn verify(self: Arc<Self>, digest: Digest, password: String, hash: String) -> bool {
        let Ok(place) = self.places.clone().acquire_owned().await else { return false };
        // Whoever had the place before may have asked the same: senders begin all at once.
        if let Some(right) = self.remembered.recall(&digest) {
            return right;
        }
        let hashed = tokio::task::spawn_blocking(move || {
            let right = bcrypt::verify(&password, &hash).unwrap_or(false);
            self.remembered.remember(digest, right);
            // Here, and not with the caller: one that hangs up leaves the hash behind.
            drop(place);
            right
        });
        hashed.await.unwrap_or(false)
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
    fn recall(&self, digest: &Digest) -> Option<bool> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let wrong = || answers.wrong.contains(digest).then_some(false);
        answers.right.contains(digest).then_some(true).or_else(wrong)
    }

    fn remember(&self, digest: Digest, right: bool) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = if right { &mut answers.right } else { &mut answers.wrong };
        // Each kind by itself, so that guesses do not push out those who know.
        if kind.len() >= MAX_REMEMBERED {
            kind.clear();
        }
        kind.insert(digest);
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
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll(checked: &mut Pin<Box<dyn Future<Output = bool> + Send>>) -> Poll<bool> {
        checked.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    fn users(name: &str, password: &str) -> Arc<Users> {
        let mut users = Users::default();
        users.add(&format!("{name}:{}", bcrypt::hash(password, 4).unwrap()), "test").unwrap();
        Arc::new(users)
    }

    #[tokio::test]
    async fn an_answer_is_remembered_right_or_wrong() {
        let users = users("ada", "right");
        for (password, right) in [("right", true), ("wrong", false)] {
            let Checked::Later(first) = users.check("ada", password) else { panic!("a hash is computed elsewhere") };
            assert_eq!(first.await, right);
            assert!(matches!(users.check("ada", password), Checked::Now(again) if again == right));
        }
        assert!(matches!(users.check("bob", "right"), Checked::Now(false)), "another user has another answer");
    }

    #[tokio::test]
    async fn hashes_wait_for_a_place_and_those_who_are_remembered_do_not() {
        let users = users("ada", "right");
        let Checked::Later(known) = users.check("ada", "right") else { panic!("a hash is computed elsewhere") };
        assert!(known.await);
        let all = users.places.clone().acquire_many_owned(AT_ONCE as u32).await.unwrap();
        let guess = || match users.check("ada", "guess") {
            Checked::Later(guess) => guess,
            Checked::Now(_) => panic!("it is not known yet"),
        };
        let mut guesses = [guess(), guess(), guess()];
        for guess in &mut guesses {
            assert!(poll(guess).is_pending());
        }
        assert!(matches!(users.check("ada", "right"), Checked::Now(true)));
        drop(all);
        for guess in guesses {
            assert!(!guess.await);
        }
    }

    #[tokio::test]
    async fn a_sender_that_hangs_up_gives_its_place_back() {
        let users = users("ada", "right");
        let Checked::Later(mut gone) = users.check("ada", "right") else { panic!("a hash is computed elsewhere") };
        let _ = poll(&mut gone);
        drop(gone);
        drop(users.places.acquire_many(AT_ONCE as u32).await.unwrap());
        assert!(matches!(users.check("ada", "right"), Checked::Now(true)), "and what was computed is remembered");
    }

    #[test]
    fn a_flood_of_guesses_is_forgotten_and_those_who_know_are_not() {
        let remembered = Remembered::default();
        let ada = remembered.digest("ada", "right");
        remembered.remember(ada, true);
        for guess in 0..3 * MAX_REMEMBERED {
            remembered.remember(remembered.digest("ada", &guess.to_string()), false);
        }
        assert!(remembered.answers.lock().unwrap().wrong.len() <= MAX_REMEMBERED);
        assert_eq!(remembered.recall(&ada), Some(true));
    }
}
