//! Things that several components use together.

use std::{
    any::Any,
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// Where they are found. A thing lives for as long as somebody uses it.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Vec<Weak<dyn Any + Send + Sync>>>>);

impl Shared {
    /// The thing that is meant, which is made if there is none.
    pub fn get_or_make<T: Any + Send + Sync>(&self, is: impl Fn(&T) -> bool, make: impl FnOnce() -> Arc<T>) -> Arc<T> {
        let mut things = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        things.retain(|thing| thing.strong_count() > 0);
        let known = things.iter().filter_map(Weak::upgrade).filter_map(|thing| thing.downcast::<T>().ok());
        let found = known.into_iter().find(|thing| is(thing));
        found.unwrap_or_else(|| {
            let made = make();
            let thing: Arc<dyn Any + Send + Sync> = made.clone();
            things.push(Arc::downgrade(&thing));
            made
        })
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}
