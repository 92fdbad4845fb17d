//! The stories that the whole system must live up to, one file each.

mod stories {
    mod backpressure;
    mod bad_input;
    mod chain;
    mod config;
    mod connections;
    mod curl_json;
    mod exporters;
    mod isolation;
    mod observe;
    mod poison;
    mod python_sdk;
    mod signals;
    mod up;
}
