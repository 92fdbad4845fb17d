//! Entry points of the fuzz targets into private modules, without logic of their own.
#![allow(missing_docs, reason = "not an interface: see `fuzz/`")]

use crate::{api, jaeger, query::TraceFilter};

pub fn parse_import(body: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let mut all = Vec::new();
    api::import::for_each_request(body, |request| all.push(request)).map(|()| all)
}

/// The filter of a search, and the number of invalid parameters.
pub fn parse_search(pairs: Vec<(String, String)>, now: u64) -> (TraceFilter, usize) {
    let mut params = api::params::QueryParams::new(pairs);
    let filter = params.filter(now);
    (filter, params.problems.len())
}

/// Whether the parameters of Jaeger's API are valid.
pub fn accepts_jaeger_search(pairs: Vec<(String, String)>) -> bool {
    let _ = (jaeger::params::parse_operation_query(pairs.clone()), jaeger::params::parse_time_range(pairs.clone()));
    jaeger::params::parse_selection(pairs).is_ok()
}
