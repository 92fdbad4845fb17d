//! Users and passwords in Apache's `htpasswd` format: plain, `{SHA}` and bcrypt.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
};

use aws_lc_rs::{
    digest,
    hmac::{self, HMAC_SHA256},
    rand::SystemRandom,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use kubewake_runtime::lock::Mutex;

use super::hash_slots::{HashSlots, PendingSlot, TooManyWaiting};
use crate::{
    components::BuildError,
    net::{listener::sender_network, request::credential::constant_time_eq},
};

/// bcrypt is slow on purpose, some 50 ms. This many results are cached, 32 bytes each, so that a sender that
/// repeats its password, right or wrong, costs one hash. (A limit for right and for wrong passwords each.)
const MAX_CACHED_VERIFICATIONS: usize = 1024;

/// The part of a bcrypt hash after the cost: a salt and a digest that belong to no password.
const DUMMY_HASH_SUFFIX: &str = "......................XXXXXXXXXXXXXXXXXXXXXXXXXXXXXX.";

type LoginDigest = [u8; 32];

#[derive(Default)]
pub(super) struct HtpasswdUsers {
    entries: HashMap<String, PasswordEntry>,
    /// The highest cost of all bcrypt hashes; `None` without bcrypt hashes.
    cost: Option<u32>,
    cache: VerificationCache,
    slots: Arc<HashSlots>,
    /// Number of computed hashes.
    #[cfg(test)]
    hashed: std::sync::atomic::AtomicUsize,
}

/// Whether a password is right.
pub(super) enum PasswordCheck {
    Now(bool),
    /// The result of a hash, which is computed on a blocking thread.
    Later(Pin<Box<dyn Future<Output = bool> + Send>>),
    /// Too many hashes of this sender wait.
    Busy,
}

enum PasswordEntry {
    Plain(String),
    Sha1(Vec<u8>),
    Bcrypt(String),
}

impl HtpasswdUsers {
    /// Adds the entries of a text; an entry replaces an earlier one of the same name. `place` is its source.
    pub(super) fn add(&mut self, text: &str, place: &str) -> Result<(), BuildError> {
        for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line.trim())) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = |why: &str| BuildError(format!("{place}, line {number}: {why}"));
            let (name, password) = line.split_once(':').ok_or_else(|| bad("the colon after the name is missing"))?;
            let entry = PasswordEntry::parse(password).map_err(bad)?;
            self.cost = self.cost.max(entry.cost());
            self.entries.insert(name.to_owned(), entry);
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Checks a password. An unknown name costs as much as a wrong password, so that the time does not reveal
    /// which names exist: where hashes are slow, one is computed for either.
    pub(super) fn check(self: &Arc<Self>, name: &str, password: &str, peer: IpAddr) -> PasswordCheck {
        let entry = self.entries.get(name);
        let is_right = entry.is_some_and(|entry| entry.matches_without_bcrypt(password));
        let hash = match (entry, self.cost) {
            (Some(PasswordEntry::Bcrypt(hash)), _) => hash.clone(),
            (_, None) => return PasswordCheck::Now(is_right),
            _ if is_right => return PasswordCheck::Now(true),
            (_, Some(cost)) => dummy_hash(cost),
        };
        let digest = self.cache.digest(name, password);
        if let Some(right) = self.cache.get(&digest) {
            return PasswordCheck::Now(right);
        }
        match self.slots.acquire(sender_network(peer), self.cache.digest(name, "")) {
            Ok(turn) => PasswordCheck::Later(Box::pin(self.clone().verify(turn, digest, password.to_owned(), hash))),
            Err(TooManyWaiting) => PasswordCheck::Busy,
        }
    }

    async fn verify(self: Arc<Self>, turn: PendingSlot, digest: LoginDigest, password: String, hash: String) -> bool {
        let Some(place) = turn.wait().await else { return false };
        // A previous holder of the slot may have checked the same login: senders begin all at once.
        if let Some(right) = self.cache.get(&digest) {
            return right;
        }
        let hashed = tokio::task::spawn_blocking(move || {
            #[cfg(test)]
            self.hashed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let right = bcrypt::verify(&password, &hash).unwrap_or(false) && !hash.ends_with(DUMMY_HASH_SUFFIX);
            self.cache.insert(digest, right);
            // Dropped here and not by the caller: a caller that is gone leaves the hash running.
            drop(place);
            right
        });
        hashed.await.unwrap_or(false)
    }
}

/// A hash of this cost that no password has.
fn dummy_hash(cost: u32) -> String {
    format!("$2b${cost:02}${DUMMY_HASH_SUFFIX}")
}

impl PasswordEntry {
    fn parse(text: &str) -> Result<Self, &'static str> {
        if let Some(encoded) = text.strip_prefix("{SHA}") {
            let hash = STANDARD.decode(encoded).ok().filter(|hash| hash.len() == digest::SHA1_OUTPUT_LEN);
            return hash.map(PasswordEntry::Sha1).ok_or("the value after {SHA} is not a SHA-1 hash");
        }
        if ["$2a$", "$2b$", "$2x$", "$2y$"].iter().any(|prefix| text.starts_with(prefix)) {
            let valid = text.parse::<bcrypt::HashParts>().is_ok();
            return valid.then(|| PasswordEntry::Bcrypt(text.to_owned())).ok_or("the bcrypt hash is not valid");
        }
        if text.starts_with("{SSHA}") || text.starts_with('$') {
            return Err("only bcrypt, {SHA} and plain passwords are supported: create the entry with htpasswd -B");
        }
        if text.is_empty() { Err("the password is empty") } else { Ok(PasswordEntry::Plain(text.to_owned())) }
    }

    /// Whether the password matches, as far as that can be decided without bcrypt.
    fn matches_without_bcrypt(&self, password: &str) -> bool {
        match self {
            Self::Plain(expected) => constant_time_eq(expected.as_bytes(), password.as_bytes()),
            Self::Sha1(expected) => {
                let actual = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, password.as_bytes());
                constant_time_eq(expected, actual.as_ref())
            }
            Self::Bcrypt(_) => false,
        }
    }

    /// The cost of a bcrypt hash.
    fn cost(&self) -> Option<u32> {
        match self {
            Self::Bcrypt(hash) => hash.parse::<bcrypt::HashParts>().ok().map(|parts| parts.get_cost()),
            Self::Plain(_) | Self::Sha1(_) => None,
        }
    }
}

/// Results of bcrypt, by a keyed hash of name and password: a memory dump reveals no password, and nobody can
/// choose credentials that collide.
struct VerificationCache {
    key: hmac::Key,
    answers: Mutex<CachedVerifications>,
}

#[derive(Default)]
struct CachedVerifications {
    right: HashSet<LoginDigest>,
    wrong: HashSet<LoginDigest>,
}

impl Default for VerificationCache {
    fn default() -> Self {
        // Without randomness the key is the same everywhere, which only weakens the protection from collisions.
        let key = hmac::Key::generate(HMAC_SHA256, &SystemRandom::new())
            .unwrap_or_else(|_| hmac::Key::new(HMAC_SHA256, b"basicauth"));
        Self { key, answers: Mutex::default() }
    }
}

impl VerificationCache {
    fn get(&self, digest: &LoginDigest) -> Option<bool> {
        let answers = self.answers.lock();
        let wrong = || answers.wrong.contains(digest).then_some(false);
        answers.right.contains(digest).then_some(true).or_else(wrong)
    }

    fn insert(&self, digest: LoginDigest, right: bool) {
        let mut answers = self.answers.lock();
        let kind = if right { &mut answers.right } else { &mut answers.wrong };
        // Right and wrong passwords apart, so that guesses do not evict valid logins.
        if kind.len() >= MAX_CACHED_VERIFICATIONS {
            kind.clear();
        }
        kind.insert(digest);
    }

    fn digest(&self, name: &str, password: &str) -> LoginDigest {
        let mut context = hmac::Context::with_key(&self.key);
        // A name holds no colon, so that name and password cannot run into each other.
        [name, ":", password].iter().for_each(|piece| context.update(piece.as_bytes()));
        context.sign().as_ref().try_into().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::Ordering,
        task::{Context, Poll, Waker},
    };

    use super::{
        super::hash_slots::{MAX_RUNNING_HASHES, MAX_WAITING_PER_NAME},
        *,
    };

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    type Later = Pin<Box<dyn Future<Output = bool> + Send>>;

    fn poll(checked: &mut Later) -> Poll<bool> {
        checked.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Users with bcrypt hashes, and one with a plain password.
    fn users(logins: &[(&str, &str)]) -> Arc<HtpasswdUsers> {
        let mut users = HtpasswdUsers::default();
        users.add("plain:password", "test").unwrap();
        for (name, password) in logins {
            users.add(&format!("{name}:{}", bcrypt::hash(password, 4).unwrap()), "test").unwrap();
        }
        Arc::new(users)
    }

    fn later(users: &Arc<HtpasswdUsers>, name: &str, password: &str, peer: IpAddr) -> Later {
        match users.check(name, password, peer) {
            PasswordCheck::Later(later) => later,
            PasswordCheck::Now(_) => panic!("it is not known yet"),
            PasswordCheck::Busy => panic!("there is room"),
        }
    }

    /// Takes all slots, until they are dropped.
    async fn occupied(users: &HtpasswdUsers) -> Vec<super::super::hash_slots::HashSlot> {
        let mut places = Vec::new();
        for _ in 0..MAX_RUNNING_HASHES {
            places.extend(users.slots.acquire(PEER, [0; 32]).unwrap().wait().await);
        }
        places
    }

    #[tokio::test]
    async fn an_answer_is_remembered_right_or_wrong() {
        let users = users(&[("ada", "right")]);
        for (password, right) in [("right", true), ("wrong", false)] {
            assert_eq!(later(&users, "ada", password, PEER).await, right);
            assert!(matches!(users.check("ada", password, PEER), PasswordCheck::Now(again) if again == right));
        }
    }

    #[tokio::test]
    async fn unknown_name_costs_a_hash_like_a_wrong_password() {
        let users = users(&[("ada", "right")]);
        let hashed = || users.hashed.load(Ordering::Relaxed);
        for (number, name) in ["ada", "nobody", "plain"].into_iter().enumerate() {
            assert!(!later(&users, name, "wrong", PEER).await);
            assert_eq!(hashed(), number + 1, "{name}");
            assert!(matches!(users.check(name, "wrong", PEER), PasswordCheck::Now(false)));
        }
        assert!(matches!(users.check("plain", "password", PEER), PasswordCheck::Now(true)));
        let mut plain_only = HtpasswdUsers::default();
        plain_only.add("ada:right", "test").unwrap();
        assert!(matches!(Arc::new(plain_only).check("nobody", "x", PEER), PasswordCheck::Now(false)));
    }

    #[test]
    fn hash_of_nobody_has_the_highest_cost_and_is_valid() {
        let mut users = HtpasswdUsers::default();
        let hashes = [4, 6, 5].map(|cost| bcrypt::hash("x", cost).unwrap());
        for (number, hash) in hashes.iter().enumerate() {
            users.add(&format!("user{number}:{hash}"), "test").unwrap();
        }
        assert_eq!(users.cost, Some(6));
        assert_eq!(dummy_hash(6).parse::<bcrypt::HashParts>().unwrap().get_cost(), 6);
        assert!(!bcrypt::verify("x", &dummy_hash(4)).unwrap(), "and a hash is computed for it");
    }

    #[tokio::test]
    async fn hashes_wait_for_a_place_and_those_who_are_remembered_do_not() {
        let users = users(&[("ada", "right")]);
        assert!(later(&users, "ada", "right", PEER).await);
        let places = occupied(&users).await;
        let mut guesses = [0, 1, 2].map(|_| later(&users, "ada", "guess", PEER));
        for guess in &mut guesses {
            assert!(poll(guess).is_pending());
        }
        assert!(matches!(users.check("ada", "right", PEER), PasswordCheck::Now(true)));
        drop(places);
        for guess in guesses {
            assert!(!guess.await);
        }
    }

    #[tokio::test]
    async fn guesses_for_one_name_are_refused_when_many_wait_and_others_come_in() {
        let users = users(&[("ada", "right"), ("bob", "right")]);
        let places = occupied(&users).await;
        let guess = |number: usize| tokio::spawn(later(&users, "ada", &number.to_string(), PEER));
        let guesses: Vec<_> = (0..MAX_WAITING_PER_NAME).map(guess).collect();
        assert!(matches!(users.check("ada", "one more", PEER), PasswordCheck::Busy));
        let others = [later(&users, "bob", "right", PEER), later(&users, "ada", "right", OTHER)].map(tokio::spawn);
        drop(places);
        for other in others {
            assert!(other.await.unwrap());
        }
        let hashed = users.hashed.load(Ordering::Relaxed);
        assert!(hashed < MAX_WAITING_PER_NAME, "{hashed} hashes: they did not wait for all guesses");
        drop(guesses);
    }

    #[tokio::test]
    async fn a_sender_that_hangs_up_gives_its_place_back() {
        let users = users(&[("ada", "right")]);
        let mut gone = later(&users, "ada", "right", PEER);
        let _ = poll(&mut gone);
        drop(gone);
        let places = tokio::time::timeout(std::time::Duration::from_secs(60), async {
            while users.hashed.load(Ordering::Relaxed) == 0 || !users.slots.is_free() {
                tokio::task::yield_now().await;
            }
        });
        places.await.expect("the places are free again");
        assert!(
            matches!(users.check("ada", "right", PEER), PasswordCheck::Now(true)),
            "and what was computed is remembered"
        );
    }

    #[test]
    fn a_flood_of_guesses_is_forgotten_and_those_who_know_are_not() {
        let remembered = VerificationCache::default();
        let ada = remembered.digest("ada", "right");
        remembered.insert(ada, true);
        for guess in 0..3 * MAX_CACHED_VERIFICATIONS {
            remembered.insert(remembered.digest("ada", &guess.to_string()), false);
        }
        assert!(remembered.answers.lock().wrong.len() <= MAX_CACHED_VERIFICATIONS);
        assert_eq!(remembered.get(&ada), Some(true));
    }
}
