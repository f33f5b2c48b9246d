//! What the rooms above remember of a workspace between calls, by its type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// One value of each type that was asked for.
#[derive(Default)]
pub(super) struct Caches(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Caches {
    /// The cache of a type, empty at first.
    pub(super) fn of<T: Default + Send + 'static>(&self) -> Arc<Mutex<T>> {
        let mut caches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let cache = caches.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(Mutex::new(T::default())));
        // Each is found by the type that it was made of.
        Arc::clone(cache).downcast().unwrap_or_default()
    }
}
