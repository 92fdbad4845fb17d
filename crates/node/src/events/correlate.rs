//! Which events are worth an object of their own. The rules and numbers are those of Kubernetes' own components. No I/O.
//!
//! The same event again is counted. When an object has had many events that differ only in their note, further ones are combined
//! into one. And each object has so many events to spend, and gets a new one only now and then: what a workload makes us say is
//! bounded.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
    time::Duration,
};

use k8s_openapi::api::core::v1::ObjectReference;
use tokio::time::Instant;

/// How many different notes there are before they are combined.
const NOTES: usize = 10;
/// How long a note counts towards that.
const WINDOW: Duration = Duration::from_secs(600);
/// How many events an object can have at once.
const BURST: f64 = 25.0;
/// How long it takes until it can have one more.
const REFILL: Duration = Duration::from_secs(300);
/// How many objects and events are remembered; beyond, the longest unheard-of are forgotten.
const REMEMBERED: usize = 4096;

/// Something that happened.
#[derive(Clone, Debug)]
pub struct Told {
    /// To whom.
    pub about: ObjectReference,
    /// `Normal` or `Warning`.
    pub kind: &'static str,
    /// In one word.
    pub reason: String,
    /// In a sentence.
    pub note: String,
}

/// What tells one event from another. Without a note it stands for all that were combined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    object: Object,
    kind: &'static str,
    reason: String,
    note: Option<String>,
}

type Object = [Option<String>; 5];

/// An event that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// What the event is called.
    pub name: String,
    /// How often it happened.
    pub count: i32,
}

/// How an event is to be written.
#[derive(Debug)]
pub enum Write {
    /// As a new one.
    New(Told),
    /// As one more of these.
    Again(Told, Known),
}

/// What is remembered of earlier events.
#[derive(Debug, Default)]
pub struct Correlator {
    known: Memory<Key, Known>,
    notes: Memory<Key, (Instant, HashSet<String>)>,
    left: Memory<Object, (Instant, f64)>,
}

impl Correlator {
    /// How to write this, and under which key to remember it; or nothing if its object has had enough.
    pub fn see(&mut self, mut told: Told, now: Instant) -> Option<(Key, Write)> {
        let object = object(&told.about);
        let all = Key { object: object.clone(), kind: told.kind, reason: told.reason.clone(), note: None };
        let combined = self.is_one_of_many(&all, &told.note, now);
        let key = if combined { all } else { Key { note: Some(told.note.clone()), ..all } };
        if combined {
            told.note.insert_str(0, "(combined from similar events): ");
        }
        if !self.spend(object, now) {
            return None;
        }
        let write = match self.known.get(&key, now).cloned() {
            Some(known) => Write::Again(told, known),
            None => Write::New(told),
        };
        Some((key, write))
    }

    /// It was written.
    pub fn know(&mut self, key: Key, known: Known) {
        self.known.put(key, known, Instant::now());
    }

    fn is_one_of_many(&mut self, all: &Key, note: &str, now: Instant) -> bool {
        let fresh = |(since, _): &&mut (Instant, HashSet<String>)| now.duration_since(*since) < WINDOW;
        if let Some((since, notes)) = self.notes.get(all, now).filter(fresh) {
            *since = now;
            if notes.len() < NOTES {
                notes.insert(note.to_owned());
                return false;
            }
            return !notes.contains(note);
        }
        self.notes.put(all.clone(), (now, HashSet::from([note.to_owned()])), now);
        false
    }

    fn spend(&mut self, object: Object, now: Instant) -> bool {
        let (since, held) = self.left.get(&object, now).copied().unwrap_or((now, BURST));
        let refilled = now.duration_since(since).as_secs_f64() / REFILL.as_secs_f64();
        let held = (held + refilled).min(BURST);
        let may = held >= 1.0;
        self.left.put(object, (now, if may { held - 1.0 } else { held }), now);
        may
    }
}

fn object(about: &ObjectReference) -> Object {
    let ObjectReference { kind, namespace, name, uid, field_path, .. } = about;
    [kind, namespace, name, uid, field_path].map(Clone::clone)
}

/// A map that forgets.
#[derive(Debug)]
struct Memory<K, V>(HashMap<K, (Instant, V)>);

impl<K, V> Default for Memory<K, V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash + Clone, V> Memory<K, V> {
    fn get(&mut self, key: &K, now: Instant) -> Option<&mut V> {
        let (used, value) = self.0.get_mut(key)?;
        *used = now;
        Some(value)
    }

    fn put(&mut self, key: K, value: V, now: Instant) {
        if self.0.len() >= REMEMBERED && !self.0.contains_key(&key) {
            let oldest = self.0.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone());
            oldest.map(|oldest| self.0.remove(&oldest));
        }
        self.0.insert(key, (now, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(object: &str, note: &str) -> Told {
        let about = ObjectReference { name: Some(object.to_owned()), ..ObjectReference::default() };
        Told { about, kind: "Normal", reason: "Made".to_owned(), note: note.to_owned() }
    }

    /// What is written of it.
    fn see(correlator: &mut Correlator, told: Told, now: Instant) -> Option<(String, i32)> {
        let (key, write) = correlator.see(told, now)?;
        let (note, count) = match write {
            Write::New(told) => (told.note, 1),
            Write::Again(told, known) => (told.note, known.count + 1),
        };
        correlator.know(key, Known { name: "event".to_owned(), count });
        Some((note, count))
    }

    #[test]
    fn the_same_again_is_counted() {
        let (mut correlator, now) = (Correlator::default(), Instant::now());
        assert_eq!(see(&mut correlator, told("a", "one"), now), Some(("one".to_owned(), 1)));
        assert_eq!(see(&mut correlator, told("a", "two"), now), Some(("two".to_owned(), 1)));
        assert_eq!(see(&mut correlator, told("a", "one"), now), Some(("one".to_owned(), 2)));
        assert_eq!(see(&mut correlator, told("b", "one"), now), Some(("one".to_owned(), 1)));
    }

    #[test]
    fn many_that_are_alike_are_combined() {
        let (mut correlator, now) = (Correlator::default(), Instant::now());
        for number in 0..NOTES {
            assert_eq!(see(&mut correlator, told("a", &number.to_string()), now), Some((number.to_string(), 1)));
        }
        let combined = |note: &str| format!("(combined from similar events): {note}");
        assert_eq!(see(&mut correlator, told("a", "more"), now), Some((combined("more"), 1)));
        assert_eq!(see(&mut correlator, told("a", "even more"), now), Some((combined("even more"), 2)));
        assert_eq!(see(&mut correlator, told("a", "0"), now), Some(("0".to_owned(), 2)));
        let later = now + WINDOW;
        assert_eq!(see(&mut correlator, told("a", "other"), later), Some(("other".to_owned(), 1)));
    }

    #[test]
    fn who_talks_too_much_is_cut_short() {
        let (mut correlator, now) = (Correlator::default(), Instant::now());
        let said = (0..100).filter_map(|_| see(&mut correlator, told("a", "again"), now)).count();
        assert_eq!(said, 25);
        assert!(see(&mut correlator, told("b", "again"), now).is_some(), "others are not affected");
        assert!(see(&mut correlator, told("a", "again"), now + REFILL).is_some());
        assert!(see(&mut correlator, told("a", "again"), now + REFILL).is_none());
    }

    #[test]
    fn little_is_remembered() {
        let (mut correlator, now) = (Correlator::default(), Instant::now());
        for number in 0..2 * REMEMBERED {
            see(&mut correlator, told(&number.to_string(), "note"), now + Duration::from_nanos(number as u64));
        }
        assert_eq!(correlator.known.0.len(), REMEMBERED);
        assert_eq!(correlator.left.0.len(), REMEMBERED);
    }
}
