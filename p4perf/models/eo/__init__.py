"""White-box models: network functions as sequences of elementary operations, mapped on a machine (Baldi & Sapio 2018).

A function is a sequence of operations, the same on every machine. A machine has a rule for each of them. From both
follow cycles and memory accesses of a packet, and from these rates, without any measurement.
"""

from p4perf.models.eo.expressions import Expression as Expression
from p4perf.models.eo.expressions import parse_expression as parse_expression
from p4perf.models.eo.hardware import DRAM as DRAM
from p4perf.models.eo.hardware import LEVELS as LEVELS
from p4perf.models.eo.hardware import Cache as Cache
from p4perf.models.eo.hardware import Hardware as Hardware
from p4perf.models.eo.hardware import HardwareValue as HardwareValue
from p4perf.models.eo.hardware import Links as Links
from p4perf.models.eo.hardware import Memory as Memory
from p4perf.models.eo.hardware import Profile as Profile
from p4perf.models.eo.hardware import accesses_per_s as accesses_per_s
from p4perf.models.eo.mapping import Demand as Demand
from p4perf.models.eo.mapping import Host as Host
from p4perf.models.eo.mapping import RateEstimate as RateEstimate
from p4perf.models.eo.mapping import estimate as estimate
from p4perf.models.eo.mapping import make_breakdown as make_breakdown
from p4perf.models.eo.mapping import place as place
from p4perf.models.eo.operations import Call as Call
from p4perf.models.eo.operations import CostRule as CostRule
from p4perf.models.eo.operations import NetworkFunction as NetworkFunction
from p4perf.models.eo.operations import Operation as Operation
from p4perf.models.eo.operations import Parameter as Parameter
from p4perf.models.eo.operations import Printed as Printed
from p4perf.models.eo.operations import Symbol as Symbol
from p4perf.models.eo.operations import make_call as make_call
from p4perf.models.eo.operations import parse_call as parse_call
from p4perf.models.eo.operations import parse_function as parse_function
from p4perf.models.eo.operations import registered_operations as registered_operations
