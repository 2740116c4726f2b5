//! The rules that scenarios must keep to, one test for each.

use super::*;

const TOOL: &str = "tool: {name: t, inputSchema: {type: object}}\n    response: {content: []}\n";

fn phased(phases: &str) -> String {
    format!("server: {{name: s}}\nbaseline:\n  tools:\n  - {TOOL}phases:\n{phases}")
}

#[test]
fn ec_cfg_001_no_phases_are_the_baseline_for_ever() {
    let text = "server: {name: s}\nbaseline:\n  tools: []\nphases: []\n";
    assert!(finds(text, &[]).scenario.unwrap().phases.is_empty());
}

#[test]
fn ec_cfg_004_replacing_or_removing_an_unknown_tool_is_an_error() {
    let text = phased(
        "- name: a\n  remove_tools: [tt]\n  replace_tools:\n    x:\n      tool: {name: x, inputSchema: {type: object}}\n      response: {content: []}\n",
    );
    finds(
        &text,
        &[
            "8:18 error: phases[0].remove_tools[0]: the baseline has no tool `tt`; did you mean `t`?",
            "10:5 error: phases[0].replace_tools.x: the baseline has no tool `x`",
        ],
    );
}
