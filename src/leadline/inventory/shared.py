"""Which drives of a rig cannot be tested at the same time."""

from leadline.inventory.rig import Rig


def shared_paths(rig: Rig) -> dict[str, str]:
    """For each slot the name of its shared path: ``<rig>/<first slot on it>``.

    Drives share a path when they hang on one controller, when an outlet feeds
    both, and when cutting one's power takes the host with it, and so all of
    them.  A shared path is a connected component of that.
    """
    path = {drive.slot: drive.slot for drive in rig.drives}

    def join(slots: list[str]) -> None:
        merged = {path[slot] for slot in slots}
        first = next((slot for slot in path if path[slot] in merged), "")
        path.update({slot: first for slot in path if path[slot] in merged})

    for controller in rig.controllers:
        join([drive.slot for drive in rig.drives if drive.controller == controller.name])
    for drive in rig.drives:
        for outlet in rig.outlets_of(drive):
            join([other.slot for other in rig.sharing(outlet)])
    return {slot: f"{rig.name}/{first}" for slot, first in path.items()}
