//! What the fuzz targets reach of private modules. Nothing is decided here.
#![allow(missing_docs, reason = "not an interface: see `fuzz/`")]

use crate::{api, jaeger, query::Filter};

/// The requests in a file that is imported.
pub fn imported(body: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let mut all = Vec::new();
    api::import::each_request(body, |request| all.push(request)).map(|()| all)
}

/// What a search asks for, and how many problems there are with it.
pub fn search(pairs: Vec<(String, String)>, now: u64) -> (Filter, usize) {
    let mut params = api::params::Params::new(pairs);
    let filter = params.filter(now);
    (filter, params.problems.len())
}

/// Whether Jaeger's parameters are understood.
pub fn jaeger_search(pairs: Vec<(String, String)>) -> bool {
    let _ = (jaeger::params::operations(pairs.clone()), jaeger::params::when(pairs.clone()));
    jaeger::params::wanted(pairs).is_ok()
}
