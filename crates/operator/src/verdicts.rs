//! What the collectors' own figures say of each pipeline, for its status.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use kubewake_api::{Delivery, Reason};

use crate::{bell::Bell, desk::Id};

/// What is known of one pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// How it delivers.
    pub delivery: Delivery,
    /// In words.
    pub message: String,
    /// Why its section is not in force everywhere, with words, if it is not.
    pub rollout: Option<(Reason, String)>,
}

/// What is known of all pipelines.
#[derive(Debug)]
pub struct Verdicts {
    known: Mutex<BTreeMap<Id, Verdict>>,
    bell: Bell,
}

impl Verdicts {
    /// Nothing yet. The bell rings when that changes.
    pub fn new(bell: Bell) -> Self {
        Self { known: Mutex::default(), bell }
    }

    /// What is known now of all pipelines.
    pub fn set(&self, all: BTreeMap<Id, Verdict>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != all {
            *known = all;
            self.bell.ring();
        }
    }

    /// What is known of one.
    pub fn get(&self, id: &Id) -> Option<Verdict> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }
}
