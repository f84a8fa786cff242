/*---
title = "What the driver's error codes mean"
doc   = "Codes of NVIDIA's Xid messages that training meets, in our own words: whose fault it is (device, link, program, driver), what happened, what to do first."
reads = []
[returns]
code = "INTEGER"
class = "VARCHAR"
meaning = "VARCHAR"
action = "VARCHAR"
---*/
SELECT CAST(code AS INTEGER) AS code, class, meaning, action
FROM (
    VALUES
    (13, 'program', 'a kernel did something that is not allowed, mostly an index outside its array', 'run with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer; suspect the device only if one device alone shows it'),
    (31, 'program', 'a kernel read or wrote an address that is not mapped', 'run with compute-sanitizer; suspect the device only if one device alone shows it'),
    (38, 'driver', 'the driver firmware reported an error', 'update the driver'),
    (43, 'program', 'a channel was stopped after a kernel of the program failed', 'look for what came before it'),
    (45, 'program', 'work was removed because its process ended or failed elsewhere', 'look for what came before it'),
    (48, 'device', 'two bits of device memory flipped: the data is lost', 'drain the node, reset the device, replace it when it comes again'),
    (61, 'device', 'a breakpoint or warning of the internal micro-controller', 'reset the device; replace it when it comes again'),
    (62, 'device', 'the internal micro-controller halted', 'reset the device; replace it when it comes again'),
    (63, 'device', 'a memory row is to be replaced by a spare one at the next reset', 'reset the device when the job ends'),
    (64, 'device', 'a memory row could not be replaced by a spare one', 'replace the device'),
    (68, 'program', 'the video processor failed', 'look for what came before it'),
    (69, 'program', 'a graphics engine class error', 'look for what came before it'),
    (74, 'link', 'an NVLink failed', 'check the bridge and the peer device; reset both'),
    (79, 'device', 'the device no longer answers on the PCI bus', 'drain the node; check power, temperature and seating; reboot'),
    (92, 'device', 'many single-bit memory errors were corrected', 'watch it; replace the device if the rate stays high'),
    (94, 'device', 'an uncorrectable memory error that hit only the program that used it', 'restart the job on another device and reset this one'),
    (95, 'device', 'an uncorrectable memory error that may have hit every program on the device', 'drain the node and reset the device'),
    (109, 'program', 'a context switch timed out', 'look for a kernel that never ends; update the driver'),
    (110, 'device', 'a security fault of the device', 'power-cycle the node; replace the device when it comes again'),
    (119, 'driver', 'the system processor of the device (GSP) did not answer', 'reset the device; update driver and firmware'),
    (120, 'driver', 'the system processor of the device (GSP) failed', 'reset the device; update driver and firmware'),
    (121, 'link', 'an error on the chip-to-chip link', 'reset the device; replace it when it comes again'),
    (137, 'link', 'a memory fault on NVLink', 'look for the peer that reported first'),
    (140, 'device', 'memory errors that could not be contained', 'drain the node and reset the device'),
    (143, 'device', 'the device could not be initialised', 'reboot the node; replace the device when it comes again'),
    (145, 'link', 'a fault of an NVLink, read side', 'check links of the device and of the switch'),
    (149, 'link', 'a fault of an NVLink', 'check links of the device and of the switch')
) AS known (code, class, meaning, action)
ORDER BY code
