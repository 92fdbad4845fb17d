//! Instances that several components share.

use std::{
    any::Any,
    fmt,
    sync::{Arc, Weak},
};

use kubewake_runtime::lock::Mutex;

/// Weak references to shared instances. An instance lives for as long as a component uses it.
#[derive(Clone, Default)]
pub struct SharedInstances(Arc<Mutex<Vec<Weak<dyn Any + Send + Sync>>>>);

impl SharedInstances {
    /// Returns the existing instance for which `is` holds, or creates one.
    pub fn get_or_create<T: Any + Send + Sync>(
        &self,
        is: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Arc<T>,
    ) -> Arc<T> {
        let mut things = self.0.lock();
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

impl fmt::Debug for SharedInstances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}
