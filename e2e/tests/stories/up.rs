//! Somebody tries Kubewake for the first time, or keeps it open all day.

mod browser;
mod demo;
mod document;
mod first;
mod interrupted;
mod ports;
mod restart;
mod rollout;
mod unprivileged;

use kubewake_e2e::traces::CallerVisibility;

use super::head_operator::parts::{CONVERGENCE, whole, with};

/// The sample Head has two children, it is applied, and what is stamped here are Deployments, too.
const INSTEAD: [(&str, &str); 3] = [
    ("POST DEMO/heads [", "PATCH DEMO/heads/{:name} ["),
    ("converge ChildA [head-operator] internal x1", "converge ChildA [head-operator] internal x2"),
    (
        "<deployment>",
        "<deployment>
                stamp Deployment [kubewake-webhook] server",
    ),
];

/// The trace of the sample Head that is new.
fn new_head() -> String {
    whole(CallerVisibility::Trusted, &with(CONVERGENCE, &INSTEAD))
}
