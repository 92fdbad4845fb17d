//! The rules by which a candidate acts on the Lease that it observes. Pure.
//!
//! Clocks of other machines are not compared. A holder holds the Lease for its duration, counted from when this
//! process first observed the revision; the times in the Lease are for people.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::api::ObjectMeta;
use tokio::time::Instant;

use super::LeaseConfig;
use crate::model::names;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum LeaseAction {
    /// There is no Lease: create it.
    Create(Lease),
    /// The Lease is free, expired or one's own: write it, at the revision that was read.
    Write(Lease),
    Wait,
}

/// The last observed revision of the Lease, and when it was first observed.
#[derive(Debug, Default)]
pub(super) struct ObservedLease(Option<(String, Instant)>);

impl ObservedLease {
    /// Records the observed Lease. Returns for how long its revision has not changed.
    pub(super) fn observe(&mut self, lease: Option<&Lease>, now: Instant) -> Duration {
        let revision = lease.and_then(|lease| lease.metadata.resource_version.as_ref());
        match (&self.0, revision) {
            (Some((last, since)), Some(revision)) if last == revision => now.saturating_duration_since(*since),
            (_, revision) => {
                self.0 = revision.map(|revision| (revision.clone(), now));
                Duration::ZERO
            }
        }
    }
}

/// The action for a Lease that has not changed for this long.
pub(super) fn decide_action(
    lease: Option<Lease>,
    terms: &LeaseConfig,
    unchanged: Duration,
    now: Timestamp,
) -> LeaseAction {
    let Some(mut lease) = lease else { return LeaseAction::Create(new_lease(terms, now)) };
    let spec = lease.spec.take().unwrap_or_default();
    let spec = match lease_holder(&spec) {
        Some(holder) if holder == terms.identity => spec,
        Some(_) if unchanged < holder_lease_duration(&spec, terms) => return LeaseAction::Wait,
        _ => acquired_spec(spec, terms, now),
    };
    LeaseAction::Write(Lease { spec: Some(renewed_spec(spec, terms, now)), ..lease })
}

/// The Lease without its holder, if `identity` holds it.
pub(super) fn released_lease(mut lease: Lease, identity: &str, now: Timestamp) -> Option<Lease> {
    let spec = lease.spec.as_mut().filter(|spec| lease_holder(spec) == Some(identity))?;
    // `None`, as API servers refuse an empty identity.
    (spec.holder_identity, spec.renew_time) = (None, Some(MicroTime(now)));
    Some(lease)
}

fn lease_holder(spec: &LeaseSpec) -> Option<&str> {
    spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// The holder's own lease duration, which it renews by.
fn holder_lease_duration(spec: &LeaseSpec, terms: &LeaseConfig) -> Duration {
    let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    seconds.map_or(terms.lease_duration(), Duration::from_secs)
}

fn new_lease(terms: &LeaseConfig, now: Timestamp) -> Lease {
    let metadata = ObjectMeta { name: Some(names::LEASE_NAME.to_owned()), ..ObjectMeta::default() };
    let spec = LeaseSpec {
        holder_identity: Some(terms.identity.clone()),
        acquire_time: Some(MicroTime(now)),
        lease_transitions: Some(0),
        ..LeaseSpec::default()
    };
    Lease { metadata, spec: Some(renewed_spec(spec, terms, now)) }
}

fn acquired_spec(spec: LeaseSpec, terms: &LeaseConfig, now: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(terms.identity.clone()),
        acquire_time: Some(MicroTime(now)),
        lease_transitions: Some(spec.lease_transitions.unwrap_or(0).saturating_add(1)),
        ..spec
    }
}

fn renewed_spec(spec: LeaseSpec, terms: &LeaseConfig, now: Timestamp) -> LeaseSpec {
    let seconds = i32::try_from(terms.lease_duration().as_secs()).unwrap_or(i32::MAX);
    LeaseSpec { lease_duration_seconds: Some(seconds), renew_time: Some(MicroTime(now)), ..spec }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERM: Duration = Duration::from_secs(15);

    fn me() -> LeaseConfig {
        LeaseConfig { identity: "me".into(), seconds: 10 }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// A Lease that was written long ago.
    fn lease(holder: Option<&str>) -> Lease {
        let spec = LeaseSpec {
            holder_identity: holder.map(str::to_owned),
            acquire_time: Some(MicroTime(at(1))),
            renew_time: Some(MicroTime(at(2))),
            lease_duration_seconds: Some(15),
            lease_transitions: Some(3),
            preferred_holder: Some("kept".into()),
            ..LeaseSpec::default()
        };
        let metadata = ObjectMeta { resource_version: Some("7".into()), ..ObjectMeta::default() };
        Lease { metadata, spec: Some(spec) }
    }

    /// The spec that is written.
    fn written(step: LeaseAction) -> LeaseSpec {
        let LeaseAction::Write(lease) = step else { panic!("{step:?}") };
        assert_eq!(lease.metadata.resource_version.as_deref(), Some("7"));
        lease.spec.unwrap()
    }

    #[test]
    fn a_lease_that_is_not_there_is_made() {
        let LeaseAction::Create(lease) = decide_action(None, &me(), Duration::ZERO, at(9)) else { panic!() };
        let spec = lease.spec.unwrap();
        assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("me"), Some(0)));
        assert_eq!((spec.acquire_time, spec.renew_time), (Some(MicroTime(at(9))), Some(MicroTime(at(9)))));
        assert_eq!(spec.lease_duration_seconds, Some(10));
    }

    #[test]
    fn what_is_free_is_taken_and_counted() {
        for free in [lease(None), lease(Some(""))] {
            let spec = written(decide_action(Some(free), &me(), Duration::ZERO, at(9)));
            assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("me"), Some(4)));
            assert_eq!((spec.acquire_time, spec.renew_time), (Some(MicroTime(at(9))), Some(MicroTime(at(9)))));
            assert_eq!((spec.lease_duration_seconds, spec.preferred_holder.as_deref()), (Some(10), Some("kept")));
        }
    }

    #[test]
    fn what_is_ones_own_is_renewed() {
        let spec = written(decide_action(Some(lease(Some("me"))), &me(), Duration::ZERO, at(9)));
        assert_eq!((spec.acquire_time, spec.renew_time), (Some(MicroTime(at(1))), Some(MicroTime(at(9)))));
        assert_eq!((spec.lease_transitions, spec.lease_duration_seconds), (Some(3), Some(10)));
    }

    #[test]
    fn what_another_holds_is_taken_when_it_has_not_changed_for_its_term_whatever_time_it_says() {
        for now in [at(0), at(9), at(1_000_000)] {
            let after = |unchanged| decide_action(Some(lease(Some("it"))), &me(), unchanged, now);
            assert_eq!(after(Duration::ZERO), LeaseAction::Wait);
            assert_eq!(after(TERM - Duration::from_millis(1)), LeaseAction::Wait, "its own term counts, not mine");
            let spec = written(after(TERM));
            assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("me"), Some(4)));
        }
    }

    #[test]
    fn a_term_that_is_none_is_ones_own() {
        for seconds in [None, Some(-5)] {
            let mut strange = lease(Some("it"));
            strange.spec.as_mut().unwrap().lease_duration_seconds = seconds;
            let after = |seconds| decide_action(Some(strange.clone()), &me(), Duration::from_secs(seconds), at(9));
            assert_eq!(after(9), LeaseAction::Wait);
            assert_ne!(after(10), LeaseAction::Wait);
        }
    }

    #[test]
    fn it_is_unchanged_since_its_revision_was_first_seen() {
        let mut seen = ObservedLease::default();
        let start = Instant::now();
        let mut look = |revision: Option<&str>, second| {
            let metadata = ObjectMeta { resource_version: revision.map(str::to_owned), ..ObjectMeta::default() };
            let lease = revision.map(|_| Lease { metadata, spec: None });
            seen.observe(lease.as_ref(), start + Duration::from_secs(second)).as_secs()
        };
        assert_eq!([look(Some("7"), 0), look(Some("7"), 9), look(Some("7"), 11)], [0, 9, 11]);
        assert_eq!([look(Some("8"), 12), look(Some("8"), 14)], [0, 2]);
        assert_eq!([look(None, 15), look(Some("8"), 16), look(Some("8"), 17)], [0, 0, 1]);
    }

    #[test]
    fn who_holds_it_can_give_it_back() {
        assert_eq!(released_lease(lease(Some("it")), "me", at(9)), None);
        let spec = released_lease(lease(Some("me")), "me", at(9)).unwrap().spec.unwrap();
        assert_eq!((spec.holder_identity, spec.lease_transitions), (None, Some(3)));
    }
}
