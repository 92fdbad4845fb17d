//! The part of the store that authentication reads.

use jiff::Timestamp;
use serde_json::Value;

use crate::api::{ObjectKey, meta::MetaAccessor};

/// The current objects, as in the store.
pub trait ObjectGetter: Send + Sync {
    fn get(&self, key: &ObjectKey) -> Option<Value>;

    /// The identity of the object that has this key now. Called for every request with a ServiceAccount's
    /// token, so a store that keeps this beside the object should return it without decoding.
    fn identity(&self, key: &ObjectKey) -> Option<ObjectIdentity> {
        let object = self.get(key)?;
        let deleted = object.meta_str("deletionTimestamp").parse().ok();
        Some(ObjectIdentity { uid: object.uid().to_owned(), deleted })
    }
}

/// Distinguishes an object from another one that had its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectIdentity {
    pub uid: String,
    pub deleted: Option<Timestamp>,
}
