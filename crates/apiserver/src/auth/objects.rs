//! What authentication needs to see of the store.

use jiff::Timestamp;
use serde_json::Value;

use crate::api::{ObjectKey, meta::Meta};

/// The objects of now, as the store holds them.
pub trait Objects: Send + Sync {
    /// A whole object.
    fn get(&self, key: &ObjectKey) -> Option<Value>;

    /// Which object it is that has this name now. Asked for every request with a ServiceAccount's token, so a store that keeps this
    /// beside the object should say it without decoding.
    fn identity(&self, key: &ObjectKey) -> Option<ObjectIdentity> {
        let object = self.get(key)?;
        let deleted = object.meta_str("deletionTimestamp").parse().ok();
        Some(ObjectIdentity { uid: object.uid().to_owned(), deleted })
    }
}

/// Tells an object from another one that had its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectIdentity {
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.deletionTimestamp`
    pub deleted: Option<Timestamp>,
}
