//! Whole-product scenarios: the real binary, real SQLite, the real walls, a scripted model on a real socket.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a panic is how a test fails, an index into JSON that is not there is null, and what is skipped is said"
)]

mod adapts;
mod agents;
mod alone;
mod always;
mod approvals;
mod attacks;
mod audit;
mod auto_apply;
mod background;
mod backup;
mod beneath;
mod boot;
mod built;
mod cards;
mod chat;
mod clients;
mod commands;
mod commits;
mod config;
mod context;
mod cuts;
mod daemon;
mod daily;
mod days;
mod decide;
mod delegates;
mod direct;
mod door;
mod elsewhere;
mod endings;
mod engine;
mod extensions;
mod guide;
mod health;
mod house;
mod identity;
mod init;
mod keys;
mod law;
mod limit;
mod live;
mod machines;
mod mcp;
mod memory;
mod models;
mod names;
mod ntfy;
mod offered;
mod organisation;
mod page;
mod peers;
mod pins;
mod pool;
mod progress;
mod prove;
mod providers;
mod proxies;
mod quickstart;
mod relay;
mod repositories;
mod retention;
mod review;
mod reviews;
mod run;
mod salvage;
mod schedules;
mod secrets;
mod sessions;
mod several;
mod stage;
mod stand_ins;
mod steps;
mod stops;
mod stuck;
#[cfg(target_arch = "x86_64")]
mod takeover;
mod telegram;
mod telemetry;
mod terminal;
mod traffic;
mod tree;
mod unattended;
mod upgrades;
mod web;
mod webhook;
mod workspace;
