//! Users and passwords as Apache's `htpasswd` writes them: plain, `{SHA}` and bcrypt.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use aws_lc_rs::{
    digest,
    hmac::{self, HMAC_SHA256},
    rand::SystemRandom,
};
use base64::{Engine, engine::general_purpose::STANDARD};

use super::places::{Crowded, Places, Turn};
use crate::{
    components::BuildError,
    net::{listen::sender_network, request::credential::same},
};

/// bcrypt is slow on purpose, some 50 ms. This many answers are remembered, 32 bytes each, so that senders that repeat
/// themselves, with the right password or a wrong one, cost a hash once.
const MAX_REMEMBERED: usize = 1024;

/// What stands behind the cost in a bcrypt hash: a salt and a digest that belong to no password.
const NOBODYS_HASH: &str = "......................XXXXXXXXXXXXXXXXXXXXXXXXXXXXXX.";

type Digest = [u8; 32];

/// Who may come in.
#[derive(Default)]
pub(super) struct Users {
    entries: HashMap<String, Entry>,
    /// The highest cost of all bcrypt hashes; none if there are none.
    cost: Option<u32>,
    remembered: Remembered,
    places: Arc<Places>,
    /// How many hashes were computed.
    #[cfg(test)]
    hashed: std::sync::atomic::AtomicUsize,
}

/// Whether a password is right.
pub(super) enum Checked {
    /// Known at once.
    Now(bool),
    /// Known when a hash was computed, on a thread that nobody else waits for.
    Later(Pin<Box<dyn Future<Output = bool> + Send>>),
    /// Too many of this sender wait for that.
    Crowded,
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
            self.cost = self.cost.max(entry.cost());
            self.entries.insert(name.to_owned(), entry);
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the password is the user's. A wrong name costs what a wrong password does, so that the time does not tell which
    /// names there are: where hashes are slow, one is computed for either.
    pub(super) fn check(self: &Arc<Self>, name: &str, password: &str, peer: IpAddr) -> Checked {
        let entry = self.entries.get(name);
        let is_right = entry.is_some_and(|entry| entry.is_right_at_once(password));
        let hash = match (entry, self.cost) {
            (Some(Entry::Bcrypt(hash)), _) => hash.clone(),
            (_, None) => return Checked::Now(is_right),
            _ if is_right => return Checked::Now(true),
            (_, Some(cost)) => nobodys_hash(cost),
        };
        let digest = self.remembered.digest(name, password);
        if let Some(right) = self.remembered.recall(&digest) {
            return Checked::Now(right);
        }
        match self.places.ask(sender_network(peer), self.remembered.digest(name, "")) {
            Ok(turn) => Checked::Later(Box::pin(self.clone().verify(turn, digest, password.to_owned(), hash))),
            Err(Crowded) => Checked::Crowded,
        }
    }

    async fn verify(self: Arc<Self>, turn: Turn, digest: Digest, password: String, hash: String) -> bool {
        let Some(place) = turn.wait().await else { return false };
        // Whoever had the place before may have asked the same: senders begin all at once.
        if let Some(right) = self.remembered.recall(&digest) {
            return right;
        }
        let hashed = tokio::task::spawn_blocking(move || {
            #[cfg(test)]
            self.hashed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let right = bcrypt::verify(&password, &hash).unwrap_or(false) && !hash.ends_with(NOBODYS_HASH);
            self.remembered.remember(digest, right);
            // Here, and not with the caller: one that hangs up leaves the hash behind.
            drop(place);
            right
        });
        hashed.await.unwrap_or(false)
    }
}

/// A hash of this cost that no password has.
fn nobodys_hash(cost: u32) -> String {
    format!("$2b${cost:02}${NOBODYS_HASH}")
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

    /// Whether the password is right, as far as that can be said without a slow hash.
    fn is_right_at_once(&self, password: &str) -> bool {
        match self {
            Self::Plain(expected) => same(expected.as_bytes(), password.as_bytes()),
            Self::Sha1(expected) => {
                let actual = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, password.as_bytes());
                same(expected, actual.as_ref())
            }
            Self::Bcrypt(_) => false,
        }
    }

    /// What a bcrypt hash costs.
    fn cost(&self) -> Option<u32> {
        match self {
            Self::Bcrypt(hash) => hash.parse::<bcrypt::HashParts>().ok().map(|parts| parts.get_cost()),
            Self::Plain(_) | Self::Sha1(_) => None,
        }
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
    use std::{
        sync::atomic::Ordering,
        task::{Context, Poll, Waker},
    };

    use super::{
        super::places::{MAX_RUNNING, MAX_WAITING_PER_NAME},
        *,
    };

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    type Later = Pin<Box<dyn Future<Output = bool> + Send>>;

    fn poll(checked: &mut Later) -> Poll<bool> {
        checked.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Users with hashes, beside one with a plain password.
    fn users(logins: &[(&str, &str)]) -> Arc<Users> {
        let mut users = Users::default();
        users.add("plain:password", "test").unwrap();
        for (name, password) in logins {
            users.add(&format!("{name}:{}", bcrypt::hash(password, 4).unwrap()), "test").unwrap();
        }
        Arc::new(users)
    }

    fn later(users: &Arc<Users>, name: &str, password: &str, peer: IpAddr) -> Later {
        match users.check(name, password, peer) {
            Checked::Later(later) => later,
            Checked::Now(_) => panic!("it is not known yet"),
            Checked::Crowded => panic!("there is room"),
        }
    }

    /// Takes all places, until they are dropped.
    async fn occupied(users: &Users) -> Vec<super::super::places::Place> {
        let mut places = Vec::new();
        for _ in 0..MAX_RUNNING {
            places.extend(users.places.ask(PEER, [0; 32]).unwrap().wait().await);
        }
        places
    }

    #[tokio::test]
    async fn an_answer_is_remembered_right_or_wrong() {
        let users = users(&[("ada", "right")]);
        for (password, right) in [("right", true), ("wrong", false)] {
            assert_eq!(later(&users, "ada", password, PEER).await, right);
            assert!(matches!(users.check("ada", password, PEER), Checked::Now(again) if again == right));
        }
    }

    #[tokio::test]
    async fn unknown_name_costs_a_hash_like_a_wrong_password() {
        let users = users(&[("ada", "right")]);
        let hashed = || users.hashed.load(Ordering::Relaxed);
        for (number, name) in ["ada", "nobody", "plain"].into_iter().enumerate() {
            assert!(!later(&users, name, "wrong", PEER).await);
            assert_eq!(hashed(), number + 1, "{name}");
            assert!(matches!(users.check(name, "wrong", PEER), Checked::Now(false)));
        }
        assert!(matches!(users.check("plain", "password", PEER), Checked::Now(true)));
        let mut plain_only = Users::default();
        plain_only.add("ada:right", "test").unwrap();
        assert!(matches!(Arc::new(plain_only).check("nobody", "x", PEER), Checked::Now(false)));
    }

    #[test]
    fn hash_of_nobody_has_the_highest_cost_and_is_valid() {
        let mut users = Users::default();
        let hashes = [4, 6, 5].map(|cost| bcrypt::hash("x", cost).unwrap());
        for (number, hash) in hashes.iter().enumerate() {
            users.add(&format!("user{number}:{hash}"), "test").unwrap();
        }
        assert_eq!(users.cost, Some(6));
        assert_eq!(nobodys_hash(6).parse::<bcrypt::HashParts>().unwrap().get_cost(), 6);
        assert!(!bcrypt::verify("x", &nobodys_hash(4)).unwrap(), "and a hash is computed for it");
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
        assert!(matches!(users.check("ada", "right", PEER), Checked::Now(true)));
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
        assert!(matches!(users.check("ada", "one more", PEER), Checked::Crowded));
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
            while users.hashed.load(Ordering::Relaxed) == 0 || !users.places.is_free() {
                tokio::task::yield_now().await;
            }
        });
        places.await.expect("the places are free again");
        assert!(matches!(users.check("ada", "right", PEER), Checked::Now(true)), "and what was computed is remembered");
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
