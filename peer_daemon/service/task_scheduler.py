"""The task of Windows' Task Scheduler (pure)."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from peer_daemon.service.facts import InstallationFacts

NAME = "axon-peer.xml"
_SCHEMA = "http://schemas.microsoft.com/windows/2004/02/mit/task"
_BELOW_NORMAL = "8"
"""7 and 8 are below normal, 9 and 10 idle."""


def text(facts: InstallationFacts) -> str:
    """The task as XML; the order of the elements is the schema's. To be saved as UTF-16, as `schtasks` wants it."""
    task = Element("Task", version="1.2", xmlns=_SCHEMA)
    _add(task, "RegistrationInfo", Description="Axon peer: lends the idle time of this computer")
    _add(SubElement(task, "Triggers"), "LogonTrigger", Enabled="true", UserId=facts.user)
    principal = _add(
        SubElement(task, "Principals"),
        "Principal",
        UserId=facts.user,
        LogonType="InteractiveToken",
        RunLevel="LeastPrivilege",
    )
    principal.set("id", "Owner")
    settings = _add(
        task,
        "Settings",
        MultipleInstancesPolicy="IgnoreNew",
        # The peer itself waits on battery, and says so.
        DisallowStartIfOnBatteries="false",
        StopIfGoingOnBatteries="false",
        ExecutionTimeLimit="PT0S",
        Priority=_BELOW_NORMAL,
    )
    _add(settings, "RestartOnFailure", Interval="PT1M", Count="999")
    program, *arguments = facts.command
    actions = SubElement(task, "Actions", Context="Owner")
    _add(actions, "Exec", Command=program, Arguments=" ".join(_quoted(word) for word in arguments))
    indent(task)
    return '<?xml version="1.0" encoding="UTF-16"?>\n' + tostring(task, encoding="unicode") + "\n"


def _add(parent: Element, name: str, **children: str) -> Element:
    element = SubElement(parent, name)
    for child, value in children.items():
        SubElement(element, child).text = value
    return element


def _quoted(word: str) -> str:
    """A path on Windows holds no quotation mark; a backslash before the closing one would escape it."""
    return f'"{word.rstrip(chr(92))}"' if " " in word else word
